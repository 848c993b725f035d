//! What a command writes that is literal, and what the next one of a pipe makes of it.

use super::shell::Word;
use super::wrapper_command;

/// What a command writes, as far as its words say so.
#[derive(Debug, Default)]
pub(super) struct PipeOutput {
    /// The text that it prints, if that is known.
    pub(super) text: Option<String>,
    /// Paths that were looked for below these.
    pub(super) found: Option<Vec<Word>>,
}

/// What a command writes that reads this.
pub(super) fn output(words: &[Word], input: PipeOutput) -> PipeOutput {
    let inner = wrapper_command::unwrapped(words);
    // `xargs echo` writes words that only its list knows.
    let Some((program, rest)) = inner.words.split_first().filter(|_| !inner.by_list) else {
        return PipeOutput::default();
    };
    let of_text = |text| PipeOutput { text: Some(text), ..PipeOutput::default() };
    match wrapper_command::name(program) {
        "echo" => of_text(echoed(rest)),
        "printf" => of_text(printed(rest)),
        "find" => PipeOutput { found: Some(roots(rest).0), ..PipeOutput::default() },
        // If `cat` gets the name of a file, it reads that file, and its content is not known.
        "cat" if rest.iter().all(|word| word.text.starts_with('-')) => input,
        "tee" => input,
        // They pass on some of what they read.
        "grep" | "egrep" | "fgrep" | "head" | "tail" | "sort" | "uniq" | "sed" | "tr" => {
            PipeOutput { found: input.found, ..PipeOutput::default() }
        }
        _ => PipeOutput::default(),
    }
}

/// Whether these words remove each file whose name they read: `xargs rm`. With `-r`, that is told by the words alone.
pub(super) fn removes_what_it_reads(words: &[Word]) -> bool {
    let inner = wrapper_command::unwrapped(words);
    let is_rm = |program: &Word| matches!(wrapper_command::name(program), "rm" | "unlink");
    inner.by_list && inner.words.first().is_some_and(is_rm)
}

/// Where `find` begins, and the words after that.
pub(super) fn roots(words: &[Word]) -> (Vec<Word>, &[Word]) {
    // These flags stand before the paths.
    let is_own = |word: &&Word| matches!(word.text.as_str(), "-H" | "-L" | "-P");
    let words = &words[words.iter().take_while(is_own).count()..];
    let from = words.iter().take_while(|word| !word.text.starts_with(['-', '(', '!'])).count();
    let (from, tests) = words.split_at(from);
    let here = || vec![Word { text: ".".to_owned(), is_plain: true }];
    (if from.is_empty() { here() } else { from.to_vec() }, tests)
}

fn echoed(words: &[Word]) -> String {
    let is_flag = |word: &&Word| matches!(word.text.as_str(), "-n" | "-e" | "-E" | "-ne" | "-en");
    let words: Vec<&str> = words.iter().skip_while(is_flag).map(|word| word.text.as_str()).collect();
    lines(&words.join(" "))
}

/// The format with each `%s` filled in.
fn printed(words: &[Word]) -> String {
    let mut words = words.iter().skip_while(|word| word.text == "--").map(|word| word.text.as_str());
    let format = words.next().unwrap_or_default();
    let mut parts = format.split("%s");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str(words.next().unwrap_or_default());
        text.push_str(part);
    }
    // The format is used again for what is left.
    for word in words {
        text.push('\n');
        text.push_str(word);
    }
    lines(&text)
}

/// A text with its escaped line breaks as such.
fn lines(text: &str) -> String {
    text.replace("\\n", "\n")
}
