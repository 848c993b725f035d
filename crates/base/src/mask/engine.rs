//! Where in a stream tokens stand, and what is shown of them.

use std::collections::VecDeque;

use super::MARK;
use super::option::{self, OptionName, OptionProgram};
use super::preceding_bytes::{KNOWN, PrecedingBytes};
use super::shape;
use super::token::Class;
use super::verdict::{Hidden, MaskVerdict};

const KEY_END: &[u8] = b"-----END";

/// The most bytes of escapes that wait for the text before them. Escapes beyond this are dropped, so that memory stays flat.
const MOST_ESCAPES: usize = 4096;

/// Looks for tokens in plain bytes.
pub(super) struct Engine {
    /// What can be written by now.
    pub(super) out: Vec<u8>,
    state: State,
    /// The end of what came, which may be the beginning of a token; at most a few hundred bytes.
    pub(super) held: Vec<u8>,
    /// The last bytes before that.
    before: [u8; KNOWN],
    /// The program whose options are read; `None` once its command has ended.
    tool: Option<OptionProgram>,
    /// Escapes that stand in `held` or after it, each with the number of held bytes before it.
    escapes: VecDeque<(usize, Vec<u8>)>,
}

/// Where in the stream it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    //   Text ──── a token ──────────────────────▶ Hidden ─── its class, its length or its end mark ends ──▶ Text
    //     │                                          ▲
    //     └────── `eyJ` ──▶ Header ─── a dot, then ten bytes of a payload
    //                         └─── anything else: it is not a token ──▶ Text
    Text,
    /// In the first part of a JSON Web Token, which tells how it is signed and is shown. The number counts the bytes shown so far.
    Header(usize),
    Hidden(Hidden),
}

/// What became of the beginning of the input.
enum Step {
    /// This number of bytes is decided, and written or hidden.
    Taken(usize),
    /// This number of bytes is decided; what follows them waits for more input.
    Held(usize),
}

impl Default for Engine {
    fn default() -> Self {
        Self {
            out: Vec::new(),
            state: State::Text,
            held: Vec::new(),
            before: [b' '; KNOWN],
            tool: None,
            escapes: VecDeque::new(),
        }
    }
}

impl Engine {
    /// Whether all of these bytes can be shown at once, after all that came before: then they are taken.
    pub(super) fn passes(&mut self, bytes: &[u8]) -> bool {
        let passes = self.held.is_empty() && self.state == State::Text && shape::candidate(bytes).is_none();
        if passes {
            self.pass(bytes);
            PrecedingBytes::keep(&mut self.before, bytes);
        }
        passes
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        // What waited is judged again, together with what came.
        let mut input = std::mem::take(&mut self.held);
        if input.is_empty() {
            self.run(bytes, false);
        } else {
            input.extend_from_slice(bytes);
            self.run(&input, false);
        }
    }

    /// An escape after what came: shown where it stands, or after what is hidden there.
    pub(super) fn escape(&mut self, bytes: &[u8]) {
        if self.held.is_empty() {
            self.out.extend_from_slice(bytes);
            return;
        }
        // It came after bytes that are not decided yet, so it waits with them.
        let waiting: usize = self.escapes.iter().map(|(_, bytes)| bytes.len()).sum();
        if waiting + bytes.len() <= MOST_ESCAPES {
            self.escapes.push_back((self.held.len(), bytes.to_vec()));
        }
    }

    /// Decides on the bytes that waited, at the end of the stream.
    pub(super) fn finish(&mut self) {
        let input = std::mem::take(&mut self.held);
        self.run(&input, true);
        // Nothing follows, so the escapes after the last byte wait no longer.
        self.show(b"");
        self.state = State::Text;
    }

    fn run(&mut self, input: &[u8], at_end: bool) {
        let mut rest = input;
        while !rest.is_empty() {
            let step = match self.state {
                State::Text => self.text(rest, at_end),
                State::Header(shown) => self.header(rest, shown, at_end),
                State::Hidden(hidden) => self.hidden(rest, hidden, at_end),
            };
            let (Step::Taken(count) | Step::Held(count)) = step;
            PrecedingBytes::keep(&mut self.before, &rest[..count]);
            rest = &rest[count..];
            if matches!(step, Step::Held(_)) {
                self.held = rest.to_vec();
                return;
            }
        }
    }

    /// Shows bytes, and the escapes in and after them.
    fn show(&mut self, mut bytes: &[u8]) {
        let all = bytes.len();
        let mut shown = 0;
        while let Some((at, escape)) = self.escapes.pop_front_if(|(at, _)| *at <= all) {
            let (first, rest) = bytes.split_at(at - shown);
            self.out.extend_from_slice(first);
            self.out.extend_from_slice(&escape);
            (bytes, shown) = (rest, at);
        }
        self.out.extend_from_slice(bytes);
        self.moved(all);
    }

    /// Skips bytes that are not shown. The escapes in them are shown: a colour that began before may end there.
    fn hide(&mut self, count: usize) {
        while let Some((_, escape)) = self.escapes.pop_front_if(|(at, _)| *at <= count) {
            self.out.extend_from_slice(&escape);
        }
        self.moved(count);
    }

    fn moved(&mut self, count: usize) {
        // These bytes are decided: what still waits counts from the byte after them.
        for (at, _) in &mut self.escapes {
            *at -= count;
        }
    }

    fn mark(&mut self) {
        self.out.extend_from_slice(MARK.as_bytes());
    }

    /// Text without a token: what ends a command in it ends that of the program.
    fn pass(&mut self, bytes: &[u8]) {
        // In `mysql x; mkdir -p1234`, the option belongs to `mkdir`.
        if self.tool.is_some() && bytes.iter().any(|b| option::ends_command(*b)) {
            self.tool = None;
        }
    }

    /// What begins at the beginning of `rest`; the program whose options follow is known from then on.
    fn verdict(&mut self, rest: &[u8], passed: &[u8], at_end: bool) -> MaskVerdict {
        let before = PrecedingBytes { kept: &self.before, input: passed };
        let found = shape::verdict(rest, before, at_end);
        if matches!(found, MaskVerdict::Token { .. } | MaskVerdict::Header) {
            return found;
        }
        match option::named(rest, before, at_end) {
            OptionName::No => {}
            OptionName::More => return MaskVerdict::More,
            OptionName::Tool(tool) => self.tool = Some(tool),
        }
        let Some(tool) = self.tool else { return found };
        let secret = option::value(tool, rest, before, at_end);
        // This happens only once the value is decided, because a place that waits is judged here again.
        if secret != MaskVerdict::More && option::is_last(tool, rest, before) {
            self.tool = None;
        }
        if secret == MaskVerdict::No { found } else { secret }
    }

    /// Shows text up to the next token.
    fn text(&mut self, input: &[u8], at_end: bool) -> Step {
        let mut at = 0;
        while let Some(next) = shape::candidate(&input[at..]) {
            self.pass(&input[at..at + next]);
            at += next;
            let (shown, state) = match self.verdict(&input[at..], &input[..at], at_end) {
                MaskVerdict::No => {
                    // The byte itself may end a command: `&` also begins a parameter of a URL, so it is a candidate.
                    self.pass(&input[at..=at]);
                    at += 1;
                    continue;
                }
                MaskVerdict::More => {
                    self.show(&input[..at]);
                    return Step::Held(at);
                }
                MaskVerdict::Header => (shape::HEADER.len(), State::Header(shape::HEADER.len())),
                MaskVerdict::Token { shown, hidden } => (shown, State::Hidden(hidden)),
            };
            self.show(&input[..at + shown]);
            if matches!(state, State::Hidden(_)) {
                self.mark();
            }
            self.state = state;
            return Step::Taken(at + shown);
        }
        self.pass(&input[at..]);
        self.show(input);
        Step::Taken(input.len())
    }

    /// Shows the first part of a JSON Web Token; what follows its dot is hidden.
    fn header(&mut self, input: &[u8], shown: usize, at_end: bool) -> Step {
        let length = Class::Dashed.run(input);
        let total = shown + length;
        if length == input.len() {
            self.show(input);
            self.state = State::Header(total);
            return Step::Taken(length);
        }
        let body = input[length..].strip_prefix(b".").filter(|_| total >= shape::SHORTEST_HEADER);
        // A token has ten bytes or more after its dot, so `eyJhbGciOiJIUzI1NiJ9.x` is not a token.
        let hidden = body.map_or(0, |body| Class::Dashed.run(&body[..body.len().min(shape::SHORTEST_PAYLOAD)]));
        if hidden == shape::SHORTEST_PAYLOAD {
            self.show(&input[..=length]);
            self.mark();
            self.state = State::Hidden(Hidden::Of(Class::Dotted));
            return Step::Taken(length + 1);
        }
        self.show(&input[..length]);
        // All bytes after the dot fit, but are too few to tell: the dot and these bytes wait for more.
        if body.is_some_and(|body| body.len() == hidden) && !at_end {
            self.state = State::Header(total);
            return Step::Held(length);
        }
        self.state = State::Text;
        Step::Taken(length)
    }

    /// Skips bytes that are hidden, to the end of the token.
    fn hidden(&mut self, input: &[u8], hidden: Hidden, at_end: bool) -> Step {
        let (passed, then) = match hidden {
            Hidden::Of(class) => match class.run(input) {
                // The token may continue in the next piece.
                all if all == input.len() => (all, State::Hidden(hidden)),
                some => (some, State::Text),
            },
            // The piece ends within the token: what is left of it is counted.
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
                        // The end mark may be split between two pieces of the stream: its first bytes are kept for the next one.
                        let passed = within.len().saturating_sub(KEY_END.len() - 1);
                        self.state = State::Hidden(Hidden::Key(left - passed));
                        self.hide(passed);
                        return Step::Held(passed);
                    }
                }
            }
        };
        self.state = then;
        self.hide(passed);
        Step::Taken(passed)
    }
}
