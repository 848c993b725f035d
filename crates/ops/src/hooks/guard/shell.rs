//! What a line for a shell runs: its simple commands, as far as they can be told without being the shell.

mod word;

use std::iter::Peekable;
use std::str::Chars;

use word::OpenQuote;
pub(super) use word::Word;

/// What a line does, one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ShellStep {
    /// It runs a simple command: its words, without where its output goes.
    Command(Vec<Word>),
    /// It runs a simple command that reads this text: `<<<`, `<<EOF`.
    Fed(Vec<Word>, String),
    /// What the command before writes is what the next one reads.
    Pipe,
    /// A shell of its own begins: `(`, `$(`, a backtick. What it does to its directory ends with it.
    Opens,
    /// The shell that began with [`Self::Opens`] ends.
    Closes,
}

/// More shells in each other than anybody writes.
const DEEPEST: usize = 32;

/// The steps of a line. What a word runs (`$(...)`) comes before the command that has the word. `None`: the line cannot be read.
pub(super) fn steps(line: &str) -> Option<Vec<ShellStep>> {
    steps_at(line, 0)
}

fn steps_at(line: &str, depth: usize) -> Option<Vec<ShellStep>> {
    let mut reader = Reader {
        chars: line.chars().peekable(),
        steps: Vec::new(),
        words: Vec::new(),
        word: None,
        is_target: false,
        is_input: false,
        input: None,
        ends: Vec::new(),
        depth,
    };
    reader.list(None)?;
    Some(reader.steps)
}

struct Reader<'l> {
    chars: Peekable<Chars<'l>>,
    steps: Vec<ShellStep>,
    words: Vec<Word>,
    word: Option<OpenQuote>,
    /// Whether the next word says where output goes, or input comes from.
    is_target: bool,
    /// Whether the next word is what the command reads (`<<<`).
    is_input: bool,
    /// What the command reads.
    input: Option<String>,
    /// What ends the texts that follow the line (`<<EOF`), and the place of the step that reads each.
    ends: Vec<(String, Option<usize>)>,
    depth: usize,
}

impl Reader<'_> {
    /// Reads to the end of the line, or to the character that ends a shell in it.
    fn list(&mut self, end: Option<char>) -> Option<()> {
        while let Some(c) = self.chars.next() {
            match c {
                c if Some(c) == end => {
                    self.end_command();
                    return Some(());
                }
                '\\' => match self.chars.next() {
                    // A backslash before the end of a line joins it with the next one.
                    Some('\n') | None => {}
                    Some(c) => self.current().quoted(c),
                },
                '\'' => self.single()?,
                '"' => self.double()?,
                // Only at the beginning of a word: `a#b` is no comment.
                '#' if self.word.is_none() => while self.chars.next_if(|c| *c != '\n').is_some() {},
                '\n' => {
                    self.end_command();
                    self.skip_texts();
                }
                // `&>` is a redirection, and does not end the command as `&` does.
                '&' if self.chars.next_if_eq(&'>').is_some() => self.redirection('>')?,
                '|' => {
                    self.end_command();
                    if self.chars.next_if_eq(&'|').is_none() {
                        // `|&` pipes standard error, too; for what is removed that makes no difference.
                        self.chars.next_if_eq(&'&');
                        self.steps.push(ShellStep::Pipe);
                    }
                }
                // A `)` here ends no shell that was opened: it ends a pattern of `case`.
                ';' | '&' | ')' => self.end_command(),
                '(' => {
                    self.end_command();
                    self.nested()?;
                }
                '`' => self.backticks()?,
                '$' if self.chars.next_if_eq(&'\'').is_some() => self.escaped()?,
                '$' => self.dollar()?,
                '>' | '<' => self.redirection(c)?,
                c if c.is_whitespace() => self.end_word(),
                c => self.current().bare(c),
            }
        }
        self.end_command();
        // A shell that never ends is a line that cannot be read, and the caller treats it as dangerous.
        end.is_none().then_some(())
    }

    fn current(&mut self) -> &mut OpenQuote {
        self.word.get_or_insert_default()
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        match (std::mem::take(&mut self.is_target), std::mem::take(&mut self.is_input)) {
            // `<<<word` is what the command reads; the name of a file after `>` or `<` is left out.
            (true, true) => self.input = word.expanded().pop().map(|word| word.text),
            (true, false) => {}
            (false, _) => self.words.extend(word.expanded()),
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        (self.is_target, self.is_input) = (false, false);
        let (words, input) = (std::mem::take(&mut self.words), self.input.take());
        if words.is_empty() {
            return;
        }
        // A text is for the command that its `<<` is in, which is complete only now.
        for (_, reader) in self.ends.iter_mut().filter(|(_, reader)| reader.is_none()) {
            *reader = Some(self.steps.len());
        }
        self.steps.push(match input {
            Some(text) => ShellStep::Fed(words, text),
            None => ShellStep::Command(words),
        });
    }

    fn single(&mut self) -> Option<()> {
        self.current().is_quoted = true;
        loop {
            match self.chars.next()? {
                '\'' => return Some(()),
                c => self.current().quoted(c),
            }
        }
    }

    fn double(&mut self) -> Option<()> {
        self.current().is_quoted = true;
        loop {
            match self.chars.next()? {
                '"' => return Some(()),
                '\\' => match self.chars.next()? {
                    '\n' => {}
                    c => {
                        // Between double quotes a backslash stands for itself before any other character.
                        if !matches!(c, '$' | '`' | '"' | '\\') {
                            self.current().quoted('\\');
                        }
                        self.current().quoted(c);
                    }
                },
                '$' => self.dollar()?,
                '`' => self.backticks()?,
                c => self.current().quoted(c),
            }
        }
    }

    /// `$'...'`: its escapes are not looked up.
    fn escaped(&mut self) -> Option<()> {
        self.current().doubt("$");
        loop {
            match self.chars.next()? {
                '\'' => return Some(()),
                '\\' => drop(self.chars.next()?),
                c => self.current().quoted(c),
            }
        }
    }

    /// What the shell puts in place of what follows a `$`.
    fn dollar(&mut self) -> Option<()> {
        if self.chars.next_if_eq(&'(').is_some() {
            self.current().doubt("$()");
            return match self.chars.next_if_eq(&'(') {
                Some(_) => self.skip_to_match('(', ')', 2),
                None => self.nested(),
            };
        }
        if self.chars.next_if_eq(&'{').is_some() {
            self.current().doubt("$x");
            return self.skip_to_match('{', '}', 1);
        }
        self.current().doubt("$");
        Some(())
    }

    /// Passes over what stands between signs of which `open` are open: arithmetic, a parameter.
    fn skip_to_match(&mut self, opens: char, closes: char, mut open: usize) -> Option<()> {
        while open > 0 {
            match self.chars.next()? {
                '\\' => drop(self.chars.next()?),
                c if c == opens => open += 1,
                c if c == closes => open -= 1,
                _ => {}
            }
        }
        Some(())
    }

    /// A shell in the middle of a command, up to its `)`.
    fn nested(&mut self) -> Option<()> {
        // Each level is a call of this function: brackets without end would overflow the stack.
        if self.depth == DEEPEST {
            return None;
        }
        self.depth += 1;
        let (words, word) = (std::mem::take(&mut self.words), self.word.take());
        let targets = (std::mem::take(&mut self.is_target), std::mem::take(&mut self.is_input));
        // The command around the shell is not complete yet, and continues after it with the words that it had.
        let (input, ends) = (self.input.take(), std::mem::take(&mut self.ends));
        self.steps.push(ShellStep::Opens);
        self.list(Some(')'))?;
        self.steps.push(ShellStep::Closes);
        (self.words, self.word, self.input) = (words, word, input);
        (self.is_target, self.is_input) = targets;
        // A text that was begun in the nested shell, and has not come yet, comes after the line.
        self.ends.splice(0..0, ends);
        self.depth -= 1;
        Some(())
    }

    fn backticks(&mut self) -> Option<()> {
        if self.depth == DEEPEST {
            return None;
        }
        let mut line = String::new();
        loop {
            match self.chars.next()? {
                '`' => break,
                '\\' => {
                    let c = self.chars.next()?;
                    // Between backticks a backslash quotes only these; before others it stays for the inner shell.
                    line.extend((!matches!(c, '`' | '\\' | '$')).then_some('\\'));
                    line.push(c);
                }
                c => line.push(c),
            }
        }
        self.current().doubt("$()");
        self.steps.push(ShellStep::Opens);
        self.steps.extend(steps_at(&line, self.depth + 1)?);
        self.steps.push(ShellStep::Closes);
        Some(())
    }

    /// `>file`, `2>&1`, `<file`, `<(command)`: what stands there is no word of the command.
    fn redirection(&mut self, sign: char) -> Option<()> {
        // A number directly before the sign names a file descriptor. It is not an argument.
        if self.word.as_ref().is_some_and(OpenQuote::is_number) {
            self.word = None;
        }
        self.end_word();
        if sign == '<' && self.chars.next_if_eq(&'<').is_some() {
            // `<<<` is a word for standard input.
            match self.chars.next_if_eq(&'<') {
                Some(_) => (self.is_target, self.is_input) = (true, true),
                None => self.text_begins(),
            }
            return Some(());
        }
        if self.chars.next_if_eq(&'(').is_some() {
            self.current().doubt("<()");
            return self.nested();
        }
        while self.chars.next_if(|c| matches!(c, '>' | '&' | '|')).is_some() {}
        (self.is_target, self.is_input) = (true, false);
        Some(())
    }

    /// `<<EOF`, `<<-'EOF'`: what follows the line is a text, and no command.
    fn text_begins(&mut self) {
        self.chars.next_if_eq(&'-');
        while self.chars.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
        let mut end = String::new();
        while let Some(c) = self.chars.next_if(|c| !c.is_whitespace() && !matches!(c, ';' | '&' | '|' | ')')) {
            // The shell removes quotes from the end's name, and the line that ends the text has none.
            end.extend((!matches!(c, '\'' | '"' | '\\')).then_some(c));
        }
        self.ends.push((end, None));
    }

    fn skip_texts(&mut self) {
        for (end, reader) in std::mem::take(&mut self.ends) {
            let mut text = String::new();
            loop {
                let mut line = String::new();
                while let Some(c) = self.chars.next_if(|c| *c != '\n') {
                    line.push(c);
                }
                let is_last = self.chars.next().is_none();
                // Only `<<-` allows tabs there. To end a text early at most reads some of it as commands.
                if line.trim_start_matches('\t') == end {
                    break;
                }
                text.push_str(&line);
                text.push('\n');
                if is_last {
                    break;
                }
            }
            if let Some(step) = reader.and_then(|reader| self.steps.get_mut(reader))
                && let ShellStep::Command(words) | ShellStep::Fed(words, _) = step
            {
                *step = ShellStep::Fed(std::mem::take(words), text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands, a shell of its own in brackets, words of which only the shell knows what they are with a `?`.
    fn shown(line: &str) -> Option<String> {
        let word = |word: &Word| format!("{}{}", word.text, if word.is_plain { "" } else { "?" });
        let step = |step: &ShellStep| match step {
            ShellStep::Command(words) => words.iter().map(word).collect::<Vec<_>>().join(" "),
            ShellStep::Fed(words, text) => {
                let words = words.iter().map(word).collect::<Vec<_>>().join(" ");
                format!("{words} <{}>", text.escape_debug())
            }
            ShellStep::Pipe => "|".to_owned(),
            ShellStep::Opens => "[".to_owned(),
            ShellStep::Closes => "]".to_owned(),
        };
        steps(line).map(|steps| steps.iter().map(step).collect::<Vec<_>>().join("; "))
    }

    #[test]
    fn the_commands_of_a_line_are_told_apart() {
        for (line, steps) in [
            ("a b; c && d | e\nf", "a b; c; d; |; e; f"),
            ("a 'b c' \"d \\\" \\n\" e\\ f", "a b c d \" \\n e f"),
            ("a >out 2>&1 b <in &>all c >>more", "a b c"),
            ("a \"$b\" ${c:-d} $((1 + (2))) e", "a $b? $x? $()? e"),
            ("a \"x $(b 'c )') y\" d", "[; b c ); ]; a x $() y? d"),
            ("a `b \\`c\\`` d", "[; [; c; ]; b $()?; ]; a $()? d"),
            ("(a; b) && c", "[; a; b; ]; c"),
            ("a <(b c) d", "[; b c; ]; a <()? d"),
            ("a {b,c}/d '{e,f}' {g..h} x{} { i,j", "a b/d c/d {e,f} {g..h}? x{} { i,j"),
            ("a {b,{c,d}}", "a {b,{c,d}}?"),
            ("a $'it\\'s' b", "a $its? b"),
            ("a <<X b\nit's\nX\nc", "a b <it\\'s\\n>; c"),
            ("a || b |& c", "a; b; |; c"),
            ("a <<<'b c' d; e", "a d <b c>; e"),
            ("a <<X | b\nx\nX", "a <x\\n>; |; b"),
            ("a \"$(cat <<'X'\nit's (so\nX\n)\" b", "[; cat <it\\'s (so\\n>; ]; a $()? b"),
        ] {
            assert_eq!(shown(line).as_deref(), Some(steps), "{line}");
        }
    }

    #[test]
    fn what_has_no_end_cannot_be_read_and_takes_no_time() {
        let many = |text: &str| text.repeat(200_000);
        for line in
            ["a 'b".to_owned(), "a \"b".to_owned(), "a $(b".to_owned(), "a `b".to_owned(), many("("), many("$(")]
        {
            assert_eq!(shown(&line), None);
        }
        for line in [many("{a,b}"), many("{}"), many("{"), many("a'b'"), many("<<x "), many(")")] {
            assert!(steps(&line).is_some());
        }
    }
}
