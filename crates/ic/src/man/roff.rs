//! The few requests of man(7) that the pages need, written so that both groff and mandoc read them without a warning.

/// Lines of source are no longer than this: style, not a limit.
const WIDTH: usize = 78;

/// A page that is being written.
pub(super) struct Page(String);

impl Page {
    /// A page with its title line; `source` is what it belongs to.
    pub(super) fn new(title: &str, date: &str, source: &str) -> Self {
        let title = escaped(&title.to_uppercase());
        Self(format!(".TH {title} 1 {date} \"{}\" \"ic manual\"\n", escaped(source)))
    }

    /// Begins a section.
    pub(super) fn section(&mut self, name: &str) {
        self.0.push_str(&format!(".SH {name}\n"));
    }

    /// Words as they are, on as many lines as they need.
    pub(super) fn words(&mut self, text: &str) {
        let mut line = String::new();
        for word in text.split_whitespace() {
            self.word(&mut line, &escaped(word));
        }
        self.flush(&mut line);
    }

    /// Begins a paragraph, but right after a heading, which begins one itself.
    pub(super) fn break_paragraph(&mut self) {
        if !self.0.lines().next_back().is_some_and(|line| line.starts_with(".SH")) {
            self.0.push_str(".PP\n");
        }
    }

    /// Text that is escaped already.
    pub(super) fn line(&mut self, text: &str) {
        self.0.push_str(&format!("{text}\n"));
    }

    /// Paragraphs of running text, between which stands an empty line.
    pub(super) fn paragraphs(&mut self, text: &str) {
        for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()) {
            self.break_paragraph();
            self.running(paragraph);
        }
    }

    /// A tag, which is escaped already, and what it means.
    pub(super) fn tagged(&mut self, tag: &str, meaning: &str) {
        self.0.push_str(&format!(".TP\n{tag}\n"));
        let mut paragraphs = meaning.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty());
        match paragraphs.next() {
            Some(first) => self.running(first),
            None => self.0.push_str("\\&\n"),
        }
        for more in paragraphs {
            self.0.push_str(".IP\n");
            self.running(more);
        }
    }

    /// Names, in the type of `tag`, and what they mean.
    pub(super) fn list(&mut self, all: &[(&str, &str)], tag: fn(&str) -> String) {
        for (name, meaning) in all {
            self.tagged(&tag(name), meaning);
        }
    }

    /// What `write` adds, further to the right.
    pub(super) fn indented(&mut self, write: impl FnOnce(&mut Self)) {
        self.0.push_str(".RS\n");
        write(self);
        self.0.push_str(".RE\n");
    }

    /// Lines as they are typed.
    pub(super) fn example(&mut self, lines: &[String]) {
        self.0.push_str(".nf\n");
        for line in lines {
            self.0.push_str(if line.is_empty() { "\\&" } else { "" });
            self.0.push_str(&at_start(&escaped(line)));
            self.0.push('\n');
        }
        self.0.push_str(".fi\n");
    }

    /// The source of the page.
    pub(super) fn into_string(self) -> String {
        self.0
    }

    /// One paragraph: a sentence begins on a line of its own, and `code` is bold.
    fn running(&mut self, text: &str) {
        let mut line = String::new();
        let mut is_bold = false;
        for word in text.split_whitespace() {
            self.word(&mut line, &marked(word, &mut is_bold));
            let bare = word.trim_end_matches([')', '`', '"']);
            if bare.ends_with(['.', '?', '!']) && !is_bold {
                self.flush(&mut line);
            }
        }
        self.flush(&mut line);
    }

    /// Adds a word that is escaped already to a line, or begins another.
    fn word(&mut self, line: &mut String, word: &str) {
        if line.len() + 1 + word.len() > WIDTH {
            self.flush(line);
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }

    fn flush(&mut self, line: &mut String) {
        if !line.is_empty() {
            self.0.push_str(&at_start(line));
            self.0.push('\n');
            line.clear();
        }
    }
}

/// Text in bold.
pub(super) fn bold(text: &str) -> String {
    format!("\\fB{}\\fR", escaped(text))
}

/// Text in italics.
pub(super) fn italic(text: &str) -> String {
    format!("\\fI{}\\fR", escaped(text))
}

/// Text that stands for itself, wherever it stands but at the start of a line.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\e"),
            // Otherwise typographers' hyphens, quotes and accents, which no shell takes.
            '-' => out.push_str("\\-"),
            '\'' => out.push_str("\\(aq"),
            '"' => out.push_str("\\(dq"),
            '`' => out.push_str("\\(ga"),
            '^' => out.push_str("\\(ha"),
            '~' => out.push_str("\\(ti"),
            c if c.is_ascii() => out.push(c),
            c => out.push_str(&format!("\\[u{:04X}]", u32::from(c))),
        }
    }
    out
}

/// A word whose backquotes are turned into bold type. `is_bold` is carried from word to word.
fn marked(word: &str, is_bold: &mut bool) -> String {
    let mut out = String::new();
    for (number, part) in word.split('`').enumerate() {
        if number > 0 {
            *is_bold = !*is_bold;
            out.push_str(if *is_bold { "\\fB" } else { "\\fR" });
        }
        out.push_str(&escaped(part));
    }
    out
}

/// A line that no request can be taken for.
fn at_start(line: &str) -> String {
    let is_request = line.starts_with('.') || line.starts_with('\'');
    format!("{}{line}", if is_request { "\\&" } else { "" })
}
