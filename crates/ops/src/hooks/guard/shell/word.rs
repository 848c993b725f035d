//! A word of a command, and what its braces stand for.

/// One word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Word {
    /// What the shell makes of it: its quotes are removed.
    pub(in super::super) text: String,
    /// Whether it is what it says: the shell puts nothing in its place but names of files.
    pub(in super::super) is_plain: bool,
}

/// A word that is being read.
#[derive(Debug, Default)]
pub(super) struct OpenQuote {
    text: String,
    is_doubtful: bool,
    /// Whether some of it stands in quotes.
    pub(super) is_quoted: bool,
    /// Whether a brace stands in it outside of quotes.
    has_brace: bool,
}

impl OpenQuote {
    pub(super) fn bare(&mut self, c: char) {
        self.has_brace |= c == '{';
        self.text.push(c);
    }

    pub(super) fn quoted(&mut self, c: char) {
        self.is_quoted = true;
        self.text.push(c);
    }

    /// The shell puts something in this place; a shell that reads the word again is to see so, too.
    pub(super) fn doubt(&mut self, sign: &str) {
        self.is_doubtful = true;
        self.text.push_str(sign);
    }

    pub(super) fn is_number(&self) -> bool {
        !self.is_quoted && self.text.bytes().all(|b| b.is_ascii_digit())
    }

    /// The words that it stands for: of `{a,b}` two.
    pub(super) fn expanded(self) -> Vec<Word> {
        let is_plain = !self.is_doubtful;
        if !self.has_brace {
            return vec![Word { text: self.text, is_plain }];
        }
        // Which of several braces stood in quotes is not known any more.
        match braces(&self.text).filter(|all| all.len() == 1 || !self.is_quoted) {
            Some(all) => all.into_iter().map(|text| Word { text, is_plain }).collect(),
            None => vec![Word { text: self.text, is_plain: false }],
        }
    }
}

/// What lists in braces stand for; `None`: lists in lists, a range, or more than anybody writes.
fn braces(text: &str) -> Option<Vec<String>> {
    const MOST: usize = 256;
    let mut all = vec![String::new()];
    let mut rest = text;
    while let Some((before, open)) = rest.split_once('{') {
        let Some((list, after)) = open.split_once('}') else { break };
        if list.contains("..") && !list.contains(',') || list.contains('{') && list.contains(',') {
            return None;
        }
        rest = after;
        // `{}` and `{a}` stand for themselves.
        if !list.contains(',') {
            for one in &mut all {
                one.extend([before, "{", list, "}"]);
            }
            continue;
        }
        let ends: Vec<&str> = list.split(',').collect();
        // Each list multiplies the words: twenty lists of two would make a million.
        if all.len() * ends.len() > MOST {
            return None;
        }
        let with = |begun: &String| ends.iter().map(|end| format!("{begun}{before}{end}")).collect::<Vec<_>>();
        all = all.iter().flat_map(with).collect();
    }
    for one in &mut all {
        one.push_str(rest);
    }
    Some(all)
}
