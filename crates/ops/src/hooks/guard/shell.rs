//! The simple commands in a line for a shell, as far as they can be told without being the shell.

/// One word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// Without its quotes.
    pub(super) text: String,
    /// Whether it is what it says: the shell puts nothing in its place but names of files.
    pub(super) is_plain: bool,
}

/// The simple commands of a line, in their order, each as its words. `None`: the line cannot be read.
pub(super) fn commands(line: &str) -> Option<Vec<Vec<Word>>> {
    let mut reader = Reader {
        chars: line.chars().peekable(),
        all: Vec::new(),
        words: Vec::new(),
        word: None,
        ends: Vec::new(),
    };
    reader.read()?;
    Some(reader.all)
}

struct Reader<'l> {
    chars: std::iter::Peekable<std::str::Chars<'l>>,
    all: Vec<Vec<Word>>,
    words: Vec<Word>,
    word: Option<Word>,
    /// What ends the texts that follow the line (`<<EOF`).
    ends: Vec<String>,
}

impl Reader<'_> {
    fn read(&mut self) -> Option<()> {
        while let Some(c) = self.chars.next() {
            match c {
                '\\' => match self.chars.next() {
                    Some('\n') | None => {}
                    Some(c) => self.push(c),
                },
                '\'' => self.single()?,
                '"' => self.double()?,
                '#' if self.word.is_none() => while self.chars.next_if(|c| *c != '\n').is_some() {},
                '\n' => {
                    self.end_command();
                    self.skip_texts();
                }
                ';' | '&' | '|' | '(' | ')' | '`' => self.end_command(),
                '$' if self.chars.peek() == Some(&'(') => {
                    self.doubt();
                    self.chars.next();
                    self.end_command();
                }
                '$' => {
                    self.doubt();
                    self.push('$');
                }
                '<' if self.chars.peek() == Some(&'<') => self.text_begins(),
                '>' | '<' => self.end_word(),
                c if c.is_whitespace() => self.end_word(),
                c => self.push(c),
            }
        }
        self.end_command();
        Some(())
    }

    fn push(&mut self, c: char) {
        self.current().text.push(c);
    }

    fn doubt(&mut self) {
        self.current().is_plain = false;
    }

    fn current(&mut self) -> &mut Word {
        self.word.get_or_insert_with(|| Word { text: String::new(), is_plain: true })
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    fn end_command(&mut self) {
        self.end_word();
        if !self.words.is_empty() {
            self.all.push(std::mem::take(&mut self.words));
        }
    }

    fn single(&mut self) -> Option<()> {
        self.current();
        loop {
            match self.chars.next()? {
                '\'' => return Some(()),
                c => self.push(c),
            }
        }
    }

    fn double(&mut self) -> Option<()> {
        self.current();
        loop {
            match self.chars.next()? {
                '"' => return Some(()),
                '\\' => {
                    let next = self.chars.next()?;
                    self.push(next);
                }
                c => {
                    if matches!(c, '$' | '`') {
                        self.doubt();
                    }
                    self.push(c);
                }
            }
        }
    }

    /// `<<EOF`, `<<-'EOF'`: what follows the line is a text, and no command.
    fn text_begins(&mut self) {
        self.end_word();
        self.chars.next();
        // `<<<` is a word for standard input.
        if self.chars.next_if_eq(&'<').is_some() {
            return;
        }
        self.chars.next_if_eq(&'-');
        while self.chars.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
        let mut end = String::new();
        while let Some(c) = self.chars.next_if(|c| !c.is_whitespace() && !matches!(c, ';' | '&' | '|' | ')'))
        {
            end.extend((!matches!(c, '\'' | '"' | '\\')).then_some(c));
        }
        self.ends.push(end);
    }

    fn skip_texts(&mut self) {
        for end in std::mem::take(&mut self.ends) {
            loop {
                let mut line = String::new();
                while let Some(c) = self.chars.next_if(|c| *c != '\n') {
                    line.push(c);
                }
                if self.chars.next().is_none() || line.trim_start_matches('\t') == end {
                    break;
                }
            }
        }
    }
}
