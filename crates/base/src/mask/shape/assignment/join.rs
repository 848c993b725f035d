//! How a value is joined to its name.

use super::super::super::preceding_bytes::PrecedingBytes;

/// What stands between the name and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Join {
    /// Without spaces, as in a shell: `name=value`
    Assigned,
    /// `name = value`, `name => value`, `name := value`
    Spaced,
    /// In quotes, as in JSON: `"name": "value"`
    Dictionary,
    /// The value of an option: `--name value`
    Option,
    /// `name: value`, `name is value`
    Said,
    /// A space alone: `name value`
    Space,
    /// An argument: `name("value")`, `"name", "value"`
    Call,
    /// `| name | value |`
    Cell,
    /// The text of an XML element: `<name>value</name>`
    Element,
    /// `"name": "NAME", "value": "value"`
    Pair,
}

/// A value beside its name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Joined {
    pub(super) join: Join,
    /// Where it begins, after its quotes.
    pub(super) at: usize,
    /// Its quote, and whether that is escaped.
    quote: Option<(u8, bool)>,
}

impl Joined {
    /// What its quotes hold; `None`: it has none, or they do not end in this line.
    pub(super) fn quoted(self, body: &[u8]) -> Option<&[u8]> {
        let (quote, is_escaped) = self.quote?;
        let mut at = 0;
        while let Some(b) = body.get(at) {
            match *b {
                // If the opening quote has a backslash, as in JSON within JSON, the backslash of the closing quote ends the value.
                b'\\' if is_escaped => return Some(&body[..at]),
                b'\\' => at += 1,
                b if b == quote => return Some(&body[..at]),
                _ => {}
            }
            at += 1;
        }
        None
    }
}

/// Quotes of JSON that was quoted twice more.
const MOST_QUOTES: usize = 8;
/// No setting is set further to the right.
const MOST_SPACES: usize = 32;

/// Reads a line from a place on.
struct Reader<'a> {
    look: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn skip(&mut self, most: usize, is_it: fn(u8) -> bool) -> usize {
        let count = self.look[self.at..].iter().take(most).take_while(|b| is_it(**b)).count();
        self.at += count;
        count
    }

    fn spaces(&mut self) -> usize {
        let mut count = self.skip(MOST_SPACES, |b| matches!(b, b' ' | b'\t'));
        while self.take("%20") {
            count += 1;
        }
        count
    }

    fn take(&mut self, word: &str) -> bool {
        let is_it = self.look[self.at..].get(..word.len()).is_some_and(|b| b.eq_ignore_ascii_case(word.as_bytes()));
        if is_it {
            self.at += word.len();
        }
        is_it
    }

    /// The quotes before a value.
    fn quotes(&mut self) -> Option<(u8, bool)> {
        // `b"..."` of Python and Rust.
        let literal = usize::from(matches!(self.look.get(self.at), Some(b'b' | b'r' | b'f' | b'u' | b'@')));
        if literal == 1 && matches!(self.look.get(self.at + 1), Some(b'"' | b'\'')) {
            self.at += 1;
        }
        while self.take("%22") {}
        let slashes = self.skip(MOST_QUOTES, |b| b == b'\\');
        let first = self.peek().filter(|b| matches!(b, b'"' | b'\'' | b'`'))?;
        // The value is empty, as in `api_key=''`.
        if slashes == 0 && self.look.get(self.at + 1) == Some(&first) {
            return None;
        }
        self.at += 1;
        // Quotes in quotes, which a shell takes off.
        let inner = self.peek().filter(|b| matches!(b, b'"' | b'\'') && *b != first && slashes == 0);
        self.at += usize::from(inner.is_some());
        Some((inner.unwrap_or(first), slashes > 0))
    }

    fn peek(&self) -> Option<u8> {
        self.look.get(self.at).copied()
    }
}

/// How what follows is joined to the name that ends at a place; `None`: it is not.
pub(super) fn joined(look: &[u8], end: usize, is_option: bool, before: PrecedingBytes<'_>) -> Option<Joined> {
    let mut reader = Reader { look, at: end };
    // These close the name: `"name":`, `['name']`, `**name**:`. Only quotes and brackets make it a key of a dictionary.
    let closed = reader.skip(MOST_QUOTES, |b| matches!(b, b'"' | b'\'' | b'`' | b'\\' | b']' | b'*'));
    let is_closed = closed > 0 && !matches!(look[end + closed - 1], b'*' | b'`') || reader.take("%22");
    let join = sign(&mut reader, is_closed, is_option && closed == 0, before)?;
    let quote = reader.quotes();
    Some(Joined { join, at: reader.at, quote })
}

fn sign(reader: &mut Reader<'_>, is_closed: bool, is_option: bool, before: PrecedingBytes<'_>) -> Option<Join> {
    let start = reader.at;
    if (is_closed || reader.peek() == Some(b'\n')) && pair(reader) {
        return Some(Join::Pair);
    }
    // `pair` has read ahead and found nothing.
    reader.at = start;
    if reader.take(">") {
        return (before.back(before.name()) == b'<').then_some(Join::Element);
    }
    if reader.take("(") {
        return matches!(reader.peek(), Some(b'"' | b'\'')).then_some(Join::Call);
    }
    let spaces = reader.spaces();
    if let Some(join) = assignment(reader, spaces, is_closed) {
        return Some(join);
    }
    if reader.take(",") {
        reader.spaces();
        return (is_closed && matches!(reader.peek(), Some(b'"' | b'\''))).then_some(Join::Call);
    }
    if reader.take("|") || reader.take("│") {
        reader.spaces();
        return (spaces > 0).then_some(Join::Cell);
    }
    if spaces == 0 {
        return None;
    }
    if is_option {
        return Some(Join::Option);
    }
    let is_said = ["is ", "was ", "to "].iter().any(|word| reader.take(word));
    Some(if is_said { Join::Said } else { Join::Space })
}

/// `=`, `:` and their like.
fn assignment(reader: &mut Reader<'_>, spaces: usize, is_closed: bool) -> Option<Join> {
    if ["=>", ":=", "==", "?="].iter().any(|sign| reader.take(sign)) {
        reader.spaces();
        return Some(Join::Spaced);
    }
    if reader.take("=") || reader.take("%3D") {
        let after = reader.spaces();
        let is_tight = spaces == 0 && after == 0;
        return Some(if is_tight { Join::Assigned } else { Join::Spaced });
    }
    // A path of modules.
    if reader.look[reader.at..].starts_with(b"::") {
        return None;
    }
    if !(reader.take(":") || reader.take("%3A") || reader.take("：")) {
        return None;
    }
    reader.skip(2, |b| b == b'*');
    reader.spaces();
    if is_closed {
        return Some(Join::Dictionary);
    }
    typed(reader);
    Some(Join::Said)
}

/// Skips the type of what is assigned (`: &str =`); without an assignment after it, the reader stays where it was.
fn typed(reader: &mut Reader<'_>) {
    let start = reader.at;
    let is_in_type = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'&' | b'\'' | b'_' | b'<' | b'>' | b' ');
    let length = reader.skip(24, is_in_type);
    let is_assigned = length > 0 && reader.take("=") && reader.peek() != Some(b'=');
    reader.spaces();
    if !is_assigned || !matches!(reader.peek(), Some(b'"' | b'\'' | b'\\')) {
        reader.at = start;
    }
}

/// `, "value":` after the name of what has that value.
fn pair(reader: &mut Reader<'_>) -> bool {
    reader.spaces();
    // It follows a comma in JSON, stands in the next line in YAML, or is the next attribute in XML: `key="password" value="..."`.
    if !(reader.take(",") || reader.take("\n") || reader.peek().is_some_and(|b| b.is_ascii_alphabetic())) {
        return false;
    }
    reader.spaces();
    reader.skip(2, |b| matches!(b, b'"' | b'\'' | b'\\'));
    if !reader.take("value") {
        return false;
    }
    reader.skip(2, |b| matches!(b, b'"' | b'\'' | b'\\'));
    reader.spaces();
    let is_joined = reader.take(":") || reader.take("=");
    reader.spaces();
    is_joined
}
