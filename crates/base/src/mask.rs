//! Secrets in text that is written down: tokens of well-known shapes are cut down to what says their kind, visibly
//! (`ghp_…[masked]`).
//!
//! The work is linear in the text, whatever it is, and takes a few hundred bytes of memory beside it: a token that comes in
//! pieces is found as if it came in one. What looks like no token of a known kind stays, so this saves from accidents and
//! proves nothing: `docs/SECURITY.md`.

mod option;
mod shape;
#[cfg(test)]
mod tests;
mod token;

use std::borrow::Cow;

use option::{Named, Tool};
use shape::Verdict;
use token::Class;

/// What stands in place of the hidden part.
pub const MARK: &str = "…[masked]";

/// No private key is longer than this; a key whose end is missing hides no more.
const LONGEST_KEY: usize = 16 * 1024;
const KEY_END: &[u8] = b"-----END";

/// The text with the tokens in it masked; the text itself if there are none.
pub fn mask(text: &str) -> Cow<'_, str> {
    let mut masker = Masker::new();
    let mut shown = masker.push(text.as_bytes()).to_vec();
    shown.extend_from_slice(masker.finish());
    if shown == text.as_bytes() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(String::from_utf8_lossy(&shown).into_owned())
}

/// [`mask`] of a text that may be left out.
pub fn mask_optional(text: Option<&str>) -> Option<Cow<'_, str>> {
    text.map(mask)
}

/// Masks a stream of bytes, which need be no text, piece by piece.
pub struct Masker {
    state: State,
    /// The end of what came, which may be the beginning of a token; at most a few hundred bytes.
    held: Vec<u8>,
    /// The last two bytes before that.
    before: [u8; 2],
    /// The program whose options are read: nothing said yet that its command ended.
    tool: Option<Tool>,
    out: Vec<u8>,
}

/// Where in the stream it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Text,
    /// In the first part of a JSON Web Token, which says how it is signed and is shown; so many bytes of it were.
    Header(usize),
    Hidden(Hidden),
}

/// How far the part reaches that is hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hidden {
    /// Over all bytes of a class.
    Of(Class),
    /// Over so many bytes.
    Bytes(usize),
    /// To the end of a private key, or over so many bytes.
    Key(usize),
}

/// What became of the beginning of the input.
enum Step {
    /// So many bytes are done with.
    Taken(usize),
    /// What follows so many bytes is not decided before more is known.
    Held(usize),
}

impl Default for Masker {
    fn default() -> Self {
        Self::new()
    }
}

impl Masker {
    /// Nothing was seen yet.
    pub fn new() -> Self {
        Self { state: State::Text, held: Vec::new(), before: *b"  ", tool: None, out: Vec::new() }
    }

    /// Takes the next bytes, and returns what can be written by now.
    pub fn push<'m>(&'m mut self, bytes: &'m [u8]) -> &'m [u8] {
        if self.held.is_empty() && self.state == State::Text && shape::candidate(bytes).is_none() {
            self.pass(bytes);
            self.remember(bytes);
            return bytes;
        }
        let mut input = std::mem::take(&mut self.held);
        if input.is_empty() {
            self.run(bytes, false);
        } else {
            input.extend_from_slice(bytes);
            self.run(&input, false);
        }
        &self.out
    }

    /// Returns what was held back: nothing more will come.
    pub fn finish(&mut self) -> &[u8] {
        let input = std::mem::take(&mut self.held);
        self.run(&input, true);
        self.state = State::Text;
        &self.out
    }

    fn run(&mut self, input: &[u8], at_end: bool) {
        self.out.clear();
        let mut rest = input;
        while !rest.is_empty() {
            let step = match self.state {
                State::Text => self.text(rest, at_end),
                State::Header(shown) => self.header(rest, shown, at_end),
                State::Hidden(hidden) => self.hidden(rest, hidden, at_end),
            };
            match step {
                Step::Taken(count) => {
                    self.remember(&rest[..count]);
                    rest = &rest[count..];
                }
                Step::Held(count) => {
                    self.remember(&rest[..count]);
                    self.held = rest[count..].to_vec();
                    return;
                }
            }
        }
    }

    fn remember(&mut self, bytes: &[u8]) {
        match bytes {
            [.., a, b] => self.before = [*a, *b],
            [b] => self.before = [self.before[1], *b],
            [] => {}
        }
    }

    /// Text without a token: what ends a command in it ends that of the program.
    fn pass(&mut self, bytes: &[u8]) {
        if self.tool.is_some() && bytes.iter().any(|b| option::ends_command(*b)) {
            self.tool = None;
        }
    }

    /// What begins at the beginning of `rest`; the program whose options follow is known from then on.
    fn verdict(&mut self, rest: &[u8], before: [u8; 2], at_end: bool) -> Verdict {
        let found = shape::verdict(rest, before, at_end);
        if matches!(found, Verdict::Token { .. } | Verdict::Header) {
            return found;
        }
        match option::named(rest, before, at_end) {
            Named::No => {}
            Named::More => return Verdict::More,
            Named::Tool(tool) => self.tool = Some(tool),
        }
        let Some(tool) = self.tool else { return found };
        let secret = option::value(tool, rest, before, at_end);
        if secret != Verdict::More && option::is_last(tool, rest, before) {
            self.tool = None;
        }
        if secret == Verdict::No { found } else { secret }
    }

    /// Shows text up to the next token.
    fn text(&mut self, input: &[u8], at_end: bool) -> Step {
        let mut at = 0;
        while let Some(next) = shape::candidate(&input[at..]) {
            self.pass(&input[at..at + next]);
            at += next;
            let before = match at {
                0 => self.before,
                1 => [self.before[1], input[0]],
                _ => [input[at - 2], input[at - 1]],
            };
            let (shown, state) = match self.verdict(&input[at..], before, at_end) {
                Verdict::No => {
                    self.pass(&input[at..=at]);
                    at += 1;
                    continue;
                }
                Verdict::More => {
                    self.out.extend_from_slice(&input[..at]);
                    return Step::Held(at);
                }
                Verdict::Header => (shape::HEADER.len(), State::Header(shape::HEADER.len())),
                Verdict::Token { shown, hidden } => (shown, State::Hidden(hidden)),
            };
            self.out.extend_from_slice(&input[..at + shown]);
            if matches!(state, State::Hidden(_)) {
                self.out.extend_from_slice(MARK.as_bytes());
            }
            self.state = state;
            return Step::Taken(at + shown);
        }
        self.pass(&input[at..]);
        self.out.extend_from_slice(input);
        Step::Taken(input.len())
    }

    /// Shows the first part of a JSON Web Token; what follows its dot is hidden.
    fn header(&mut self, input: &[u8], shown: usize, at_end: bool) -> Step {
        let length = Class::Dashed.run(input);
        let total = shown + length;
        if length == input.len() {
            self.out.extend_from_slice(input);
            self.state = State::Header(total);
            return Step::Taken(length);
        }
        let body = input[length..].strip_prefix(b".").filter(|_| total >= shape::SHORTEST_HEADER);
        let hidden =
            body.map_or(0, |body| Class::Dashed.run(&body[..body.len().min(shape::SHORTEST_PAYLOAD)]));
        if hidden == shape::SHORTEST_PAYLOAD {
            self.out.extend_from_slice(&input[..=length]);
            self.out.extend_from_slice(MARK.as_bytes());
            self.state = State::Hidden(Hidden::Of(Class::Dotted));
            return Step::Taken(length + 1);
        }
        self.out.extend_from_slice(&input[..length]);
        if body.is_some_and(|body| body.len() == hidden) && !at_end {
            self.state = State::Header(total);
            return Step::Held(length);
        }
        self.state = State::Text;
        Step::Taken(length)
    }

    /// Passes over what is hidden.
    fn hidden(&mut self, input: &[u8], hidden: Hidden, at_end: bool) -> Step {
        let (passed, then) = match hidden {
            Hidden::Of(class) => match class.run(input) {
                all if all == input.len() => (all, State::Hidden(hidden)),
                some => (some, State::Text),
            },
            Hidden::Bytes(count) if count > input.len() => {
                (input.len(), State::Hidden(Hidden::Bytes(count - input.len())))
            }
            Hidden::Bytes(count) => (count, State::Text),
            Hidden::Key(left) => {
                let within = &input[..input.len().min(left)];
                match within.windows(KEY_END.len()).position(|window| window == KEY_END) {
                    Some(end) => (end, State::Text),
                    None if within.len() == left => (left, State::Text),
                    None if at_end => (within.len(), State::Text),
                    None => {
                        let passed = within.len().saturating_sub(KEY_END.len() - 1);
                        self.state = State::Hidden(Hidden::Key(left - passed));
                        return Step::Held(passed);
                    }
                }
            }
        };
        self.state = then;
        Step::Taken(passed)
    }
}
