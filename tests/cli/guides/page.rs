//! Splits a page into files, dialogues and blocks of code.

/// A part of a page.
pub(crate) enum Part<'g> {
    /// Anything that is not done.
    Text(&'g str),
    /// A file and its content, with the line that heads it.
    File { name: &'g str, content: String },
    /// The lines of a dialogue.
    Dialogue(Vec<&'g str>),
}

/// A page in its order; the lines that open and close a block are text.
pub(crate) fn parts(page: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        parts.push(Part::Text(line));
        let Some(head) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        match head.split_once(' ') {
            Some((_, name)) => parts.push(Part::File { name, content: block.join("\n") + "\n" }),
            None if head == "console" => parts.push(Part::Dialogue(block)),
            None => parts.extend(block.into_iter().map(Part::Text)),
        }
        parts.push(Part::Text("```"));
    }
    parts
}

/// The commands of a dialogue, each with the answer that is shown.
pub(crate) fn exchanges<'g>(lines: &[&'g str]) -> Vec<(Vec<&'g str>, Vec<&'g str>)> {
    let mut exchanges: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
    for line in lines {
        match (line.strip_prefix("$ "), line.strip_prefix("> "), exchanges.last_mut()) {
            (Some(command), _, _) => exchanges.push((vec![command], Vec::new())),
            (_, Some(more), Some((command, answer))) if answer.is_empty() => command.push(more),
            (_, _, Some((_, answer))) => answer.push(line),
            (_, _, None) => panic!("a dialogue begins with a command, not with {line:?}"),
        }
    }
    exchanges
}

/// The blocks of code of a page: what heads each, and its lines.
pub(crate) fn blocks(page: &str) -> Vec<(&str, Vec<&str>)> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(head) = line.strip_prefix("```") {
            blocks.push((head, lines.by_ref().take_while(|line| *line != "```").collect()));
        }
    }
    blocks
}

/// The lines of a page that are not code, each with its number.
pub(crate) fn prose(page: &str) -> Vec<(usize, &str)> {
    let mut is_code = false;
    let mut prose = Vec::new();
    for (at, line) in page.lines().enumerate() {
        if line.starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            prose.push((at + 1, line));
        }
    }
    prose
}
