//! The paths that a line for a shell writes, as far as the line itself says so: targets of `>`, and arguments of `touch`, `rm`, `mv` and
//! similar commands.

/// The role of the word that is read next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Word,
    Target,
}

/// The letters of sed and perl that may stand in one word before `i`.
const IN_FRONT: [char; 9] = ['n', 'p', 'l', 'a', 'w', 'r', 'E', 's', 'z'];

/// A command of a line, word by word.
#[derive(Default)]
struct Command {
    words: Vec<String>,
    targets: Vec<String>,
}

/// The paths that a line writes, as it names them. Empty where the line changes its directory: then its relative paths could be anywhere.
pub(crate) fn written(line: &str) -> Vec<String> {
    let commands = commands(line);
    if commands.iter().any(|one| matches!(one.words.first().map(String::as_str), Some("cd" | "pushd"))) {
        return Vec::new();
    }
    let named = commands.into_iter().flat_map(Command::written);
    let plain = named.map(|path| path.strip_prefix("./").unwrap_or(&path).to_owned());
    // Names are compared with paths from the root: an absolute path, a variable or a home directory is none of them.
    plain.filter(|path| !path.is_empty() && !path.starts_with(['/', '$', '~'])).collect()
}

impl Command {
    fn written(self) -> Vec<String> {
        let Self { words, mut targets } = self;
        let Some((name, rest)) = words.split_first() else { return targets };
        // `/bin/rm x` is `rm x`.
        let name = name.rsplit('/').next().unwrap_or(name);
        // Letters without a value may come before it, as in `perl -pi -e`.
        let letters = |word: &String| word.strip_prefix('-').map(|word| word.trim_start_matches(IN_FRONT).to_owned());
        let in_place =
            rest.iter().any(|word| word == "--in-place" || letters(word).is_some_and(|word| word.starts_with('i')));
        let arguments: Vec<&String> = rest.iter().filter(|word| !word.starts_with('-')).collect();
        match name {
            "touch" | "rm" | "rmdir" | "mkdir" | "tee" | "mv" | "unlink" => {
                targets.extend(arguments.into_iter().cloned());
            }
            // These only read their other arguments; `mv` above removes them.
            "cp" | "ln" | "install" => targets.extend(arguments.last().copied().cloned()),
            // `sed -i SCRIPT FILE`: only the last word is a file for sure. A name that is missed does no harm:
            // a path that no work names may belong to each.
            "sed" | "perl" if in_place => targets.extend(arguments.last().copied().cloned()),
            _ => {}
        }
        targets
    }

    fn take(&mut self, word: &mut Option<String>, next: &mut Next) {
        if let Some(word) = word.take() {
            let list = if *next == Next::Target { &mut self.targets } else { &mut self.words };
            list.push(word);
        }
        // A `>` has one target: the words after it are arguments again.
        *next = Next::Word;
    }
}

fn commands(line: &str) -> Vec<Command> {
    let (mut all, mut command) = (Vec::new(), Command::default());
    // `None`: no word was begun. An empty word in quotes is one.
    let (mut word, mut next) = (None::<String>, Next::Word);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' | '"' => {
                let quoted: String = chars.by_ref().take_while(|inner| *inner != c).collect();
                word.get_or_insert_default().push_str(&quoted);
            }
            '\\' => word.get_or_insert_default().extend(chars.next()),
            '>' => {
                // The number of the redirected stream is no word.
                word = word.filter(|word| !word.bytes().all(|b| b.is_ascii_digit()));
                command.take(&mut word, &mut next);
                // `>>` and `>|` write the file as well.
                while chars.next_if(|c| matches!(c, '>' | '|')).is_some() {}
                // A redirection to another stream writes no file, and the stream's number is not an argument.
                let is_stream =
                    chars.next_if_eq(&'&').is_some() && chars.next_if(|c| c.is_ascii_digit() || *c == '-').is_some();
                next = if is_stream { Next::Word } else { Next::Target };
            }
            // `&&` and `||` make an empty command between their two characters, which writes nothing.
            ';' | '|' | '&' | '(' | ')' => {
                command.take(&mut word, &mut next);
                all.push(std::mem::take(&mut command));
            }
            c if c.is_whitespace() => {
                // In `> file` the target is still awaited after the blank.
                if word.is_some() {
                    command.take(&mut word, &mut next);
                }
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    command.take(&mut word, &mut next);
    all.push(command);
    all
}

#[cfg(test)]
mod tests {
    use super::written;

    #[test]
    fn what_a_line_writes_is_told_from_what_it_reads() {
        for (line, paths) in [
            ("echo sub > sub.txt", &["sub.txt"][..]),
            ("cat a b >>out/c 2>err.log; ls d", &["out/c", "err.log"]),
            ("make 2>&1 | tee build.log", &["build.log"]),
            ("touch './a b' && rm -rf old", &["a b", "old"]),
            ("sed -i s/a/b/ f.txt", &["f.txt"]),
            ("sed s/a/b/ f.txt", &[]),
            ("sed -Ei.bak s/a/b/ f.txt", &["f.txt"]),
            ("perl -pi -e s/a/b/ f.txt", &["f.txt"]),
            ("perl -pe s/i/b/ f.txt", &[]),
            ("touch a 2>&1", &["a"]),
            ("touch a >&- b; make >&all.log", &["a", "b", "all.log"]),
            ("mv a.txt b.txt", &["a.txt", "b.txt"]),
            ("cp a.txt b.txt", &["b.txt"]),
            ("cd sub && echo x > x", &[]),
            ("echo x > /tmp/x; echo y > $HOME/y", &[]),
            ("echo 'a > b'; grep '>' c", &[]),
            ("sleep 3", &[]),
            ("", &[]),
            ("echo >", &[]),
        ] {
            assert_eq!(written(line), paths, "{line}");
        }
    }
}
