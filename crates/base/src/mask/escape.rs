//! Escapes of a terminal (ECMA-48): colours, links, titles. They are told apart from the text around them.

/// An escape that is longer than this is text: a string without an end would hide all that follows it.
const LONGEST: usize = 4096;
/// A control sequence that is longer than this is text.
const LONGEST_CONTROL: usize = 64;

/// A piece of a stream.
pub(super) enum EscapePart<'a> {
    Plain(&'a [u8]),
    Escape(&'a [u8]),
    /// The text within an escape: an address, a title.
    Text(&'a [u8]),
}

/// Splits a stream, which may come in pieces.
#[derive(Default)]
pub(super) struct Splitter {
    /// The beginning of an escape, as far as it came.
    pending: Vec<u8>,
}

/// What stands at a place.
enum Seen {
    No,
    More,
    /// An escape, and its length in bytes.
    Escape(usize),
    /// An escape with text in it: its introducer, the text, its end.
    String(usize, usize, usize),
}

/// Whether an escape may begin with it: ESC, the first byte of a control of eight bits, shifts, and the backslash of an escape that is
/// written out (`\u001b[31m` in JSON).
const fn may_begin(b: u8) -> bool {
    matches!(b, 0x1b | 0xc2 | 0x0e | 0x0f | b'\\')
}

impl Splitter {
    /// Whether there may be an escape in these bytes.
    pub(super) fn is_needed(&self, bytes: &[u8]) -> bool {
        // Each block is folded without an early exit: the compiler turns that into vector instructions.
        !self.pending.is_empty() || bytes.chunks(64).any(|block| block.iter().fold(false, |any, b| any | may_begin(*b)))
    }

    /// Tells the pieces of what came. `at_end`: nothing follows.
    pub(super) fn split(&mut self, bytes: &[u8], at_end: bool, tell: &mut dyn FnMut(EscapePart<'_>)) {
        let joined;
        let input = if self.pending.is_empty() {
            bytes
        } else {
            // The last piece ended within an escape: its bytes are judged again, with what came.
            joined = [&std::mem::take(&mut self.pending), bytes].concat();
            &joined
        };
        let (mut from, mut at) = (0, 0);
        while let Some(next) = input[at..].iter().position(|b| may_begin(*b)) {
            at += next;
            let (opening, text, closing) = match seen(&input[at..], at_end) {
                Seen::No => {
                    at += 1;
                    continue;
                }
                Seen::More => {
                    tell(EscapePart::Plain(&input[from..at]));
                    self.pending = input[at..].to_vec();
                    return;
                }
                Seen::Escape(length) => (length, 0, 0),
                Seen::String(opening, text, closing) => (opening, text, closing),
            };
            tell(EscapePart::Plain(&input[from..at]));
            tell(EscapePart::Escape(&input[at..at + opening]));
            at += opening;
            if closing > 0 {
                tell(EscapePart::Text(&input[at..at + text]));
                tell(EscapePart::Escape(&input[at + text..at + text + closing]));
                at += text + closing;
            }
            from = at;
        }
        tell(EscapePart::Plain(&input[from..]));
    }
}

fn seen(rest: &[u8], at_end: bool) -> Seen {
    let found = match (rest[0], rest.get(1)) {
        // Shift out and shift in are one byte each.
        (0x0e | 0x0f, _) => Seen::Escape(1),
        (_, None) => Seen::More,
        // UTF-8 writes eight-bit controls with c2: CSI (9b), then OSC, DCS, SOS, PM and APC, which hold a string.
        (0xc2, Some(0x9b)) => control(rest, 2),
        (0xc2, Some(0x9d | 0x90 | 0x98 | 0x9e | 0x9f)) => string(rest),
        (0xc2, _) => Seen::No,
        (b'\\', _) => written(rest),
        // The same controls also begin with ESC: `ESC [ 31 m` is a colour, `ESC ] 0 ; title BEL` is a title.
        (_, Some(b'[')) => control(rest, 2),
        (_, Some(b']' | b'P' | b'X' | b'^' | b'_')) => string(rest),
        // `ESC ( B` chooses a set of characters: intermediate bytes follow ESC, and a final byte ends it.
        (_, Some(b' '..=b'/')) => {
            let between = rest[1..].iter().take(8).take_while(|b| matches!(b, b' '..=b'/')).count();
            match rest.get(1 + between) {
                None => Seen::More,
                Some(b'0'..=b'~') => Seen::Escape(between + 2),
                Some(_) => Seen::No,
            }
        }
        (_, Some(b'0'..=b'~')) => Seen::Escape(2),
        (_, Some(_)) => Seen::No,
    };
    // Half an escape at the end of the stream is text: nothing completes it any more.
    if at_end && matches!(found, Seen::More) { Seen::No } else { found }
}

/// A control sequence from its parameters on.
fn control(rest: &[u8], from: usize) -> Seen {
    // ECMA-48, 5.4: parameter bytes are 30 to 3f, intermediate bytes are 20 to 2f, and the final byte is one of 40 to 7e.
    let near = &rest[..rest.len().min(LONGEST_CONTROL)];
    let parameters = near.iter().skip(from).take_while(|b| matches!(b, b'0'..=b'?')).count();
    let between = near.iter().skip(from + parameters).take_while(|b| matches!(b, b' '..=b'/')).count();
    match near.get(from + parameters + between) {
        Some(b'@'..=b'~') => Seen::Escape(from + parameters + between + 1),
        None if near.len() < LONGEST_CONTROL => Seen::More,
        _ => Seen::No,
    }
}

/// A string and its end: BEL, or ESC and a backslash. No line breaks in it.
fn string(rest: &[u8]) -> Seen {
    let near = &rest[..rest.len().min(LONGEST)];
    let is_end = |b: &u8| b.is_ascii_control() || *b == 0xc2;
    let mut at = 2;
    while let Some(next) = near.iter().skip(at).position(is_end) {
        at += next;
        match (near[at], near.get(at + 1)) {
            (0x07, _) => return Seen::String(2, at - 2, 1),
            // ESC and a backslash end the string, and so does the same control in eight bits.
            (0x1b, Some(b'\\')) | (0xc2, Some(0x9c)) => return Seen::String(2, at - 2, 2),
            (0x1b | 0xc2, None) if near.len() < LONGEST => return Seen::More,
            // Any other byte after c2 is the rest of a character, such as the section sign.
            (0xc2, Some(_)) => at += 1,
            _ => return Seen::No,
        }
    }
    if near.len() < LONGEST { Seen::More } else { Seen::No }
}

/// A colour that is written out, as programs write it into JSON and people into a script.
fn written(rest: &[u8]) -> Seen {
    const ESCAPES: [&[u8]; 8] =
        [b"\\u{1b}[", b"\\u001b[", b"\\u001B[", b"\\x1b[", b"\\x1B[", b"\\033[", b"\\e[", b"\\E["];
    let mut is_open = false;
    for escape in ESCAPES {
        if rest.starts_with(escape) {
            return match control(rest, escape.len()) {
                Seen::Escape(length) if !matches!(rest[length - 1], b'm' | b'K') => Seen::No,
                found => found,
            };
        }
        is_open |= escape.starts_with(rest);
    }
    if is_open { Seen::More } else { Seen::No }
}
