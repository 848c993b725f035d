//! Where a token begins and how much of it is hidden.

use super::preceding_bytes::PrecedingBytes;
use super::token::{Class, SHAPES, TokenShape, shapes};
use super::verdict::{Hidden, LONGEST_KEY, MaskVerdict};

mod assignment;
mod http;
mod phrase;

use assignment::assigned;
use http::{authorization, bearer, http_header, query, user};
use phrase::{azure, identified, login, pair, telegram, thin};

/// What the first part of a JSON Web Token begins with: `{"` in base64 (RFC 7519).
pub(super) const HEADER: &[u8] = b"eyJ";
/// No first part is shorter: `{"alg":"none"}` has 19 characters, and there are older ones without quotes.
pub(super) const SHORTEST_HEADER: usize = 15;
pub(super) const SHORTEST_PAYLOAD: usize = 10;

/// A private key's first line (RFC 7468), after its dashes.
const KEY: &[u8] = b"BEGIN ";
const LONGEST_LABEL: usize = 64;

const URL: &[u8] = b"://";
/// What stands before the host of a URL is no longer.
const LONGEST_USERINFO: usize = 512;
/// A user's name without a password that is longer than this is a token.
const LONGEST_USER: usize = 20;

/// Names whose value is a secret that has no shape of its own. They stand where the pairs below begin.
const NAMES: [&[u8]; 3] = [b"aws_secret_access_key", b"aws_session_token", b"accesskey"];
/// A value beside a name is no shorter.
const SHORTEST_ASSIGNED: usize = 4;
const SHORTEST_VALUE: usize = 16;
const MOST_BETWEEN: usize = 8;

/// With which three bytes something begins that [`verdict`] knows, a bit each; upper and lower case are the same. Then, with which one
/// and which two.
static BEGINNINGS: ([u64; 4096], [u64; 64], [bool; 64]) = beginnings();

/// A letter's place in the alphabet, whatever its case; other bytes share a place.
const fn folded(b: u8) -> usize {
    (b & 0x1f | (b & 0x40) >> 1) as usize
}

#[expect(clippy::large_stack_arrays, reason = "it is made when this is compiled")]
const fn beginnings() -> ([u64; 4096], [u64; 64], [bool; 64]) {
    // The judges and the programs of `option` are found by these, such as `mysql` by `ysq`.
    const OTHERS: [&[u8]; 55] = [
        b"eyJ", b"BEG", b"bea", b"://", b"aws", b"acc", b"aut", b"pas", b"pwd", b"sec", b"tok", b"key", b"api", b"cre",
        b"coo", b"x-", b"pri", b"-u ", b"-u=", b"-u'", b"-u\"", b"--u", b"--p", b"ysq", b"db ", b"db-", b"hpa", b"-cl",
        b"-p", b"-a", b"-w", b"-P", b"ngo", b"aps", b"apa", b"apm", b"lcm", b"ip ", b"ink", b"cp ", b"ftp", b"?ke",
        b"&ke", b"?to", b"&to", b"?au", b"&au", b"?si", b"&si", b"log", b"ide", b":AA", b"Q~", b"thi", b"sig",
    ];
    // For `ghp_`, `three` has g-h-p, `two` has g-h and `one` has g. The last two serve the end of a piece: its last bytes
    // may begin what the next piece completes.
    let (mut three, mut two, mut one) = ([0; 4096], [0; 64], [false; 64]);
    let mut at = 0;
    while at < SHAPES.len() + OTHERS.len() {
        let word = if at < SHAPES.len() { SHAPES[at].prefix } else { OTHERS[at - SHAPES.len()] };
        let (a, b) = (folded(word[0]), folded(word[1]));
        let mut c = 0;
        while c < 64 {
            // A word of two bytes fits any third byte.
            if word.len() == 2 || folded(word[2]) == c {
                three[a * 64 + b] |= 1 << c;
            }
            c += 1;
        }
        two[a] |= 1 << b;
        one[a] = true;
        at += 1;
    }
    (three, two, one)
}

/// Where in the input something may begin, that must be looked at with care.
pub(super) fn candidate(input: &[u8]) -> Option<usize> {
    let (three, two, one) = &BEGINNINGS;
    if let [a, b, rest @ ..] = input {
        let mut pair = folded(*a) << 6 | folded(*b);
        for (at, b) in rest.iter().enumerate() {
            let c = folded(*b);
            if three[pair] >> c & 1 == 1 {
                return Some(at);
            }
            pair = (pair << 6 | c) & 0xfff;
        }
        if two[pair >> 6] >> (pair & 63) & 1 == 1 {
            return Some(input.len() - 2);
        }
    }
    input.last().filter(|last| one[folded(**last)]).map(|_| input.len() - 1)
}

/// What begins at the beginning of `rest`, which follows the bytes `before`. `at_end`: nothing follows it.
pub(super) fn verdict(rest: &[u8], before: PrecedingBytes<'_>, at_end: bool) -> MaskVerdict {
    // Told apart by the first byte: most of what is looked at is nothing, and is looked at often.
    let judges: &[Judge] = match rest[0] {
        b'e' => &[header],
        b':' => &[url, telegram],
        b'B' | b'b' => &[key, bearer],
        b'a' | b'A' => &[pair, named, authorization, assigned, http_header],
        b'p' | b'P' => &[assigned, http_header],
        b's' | b'S' | b't' | b'T' => &[assigned, thin],
        b'k' | b'K' => &[assigned],
        b'c' | b'C' => &[http_header, assigned],
        b'x' | b'X' => &[http_header],
        b'l' | b'L' => &[login],
        b'i' | b'I' => &[identified],
        b'Q' => &[azure],
        b'-' => &[user],
        b'?' | b'&' => &[query],
        _ => &[],
    };
    let shapes = shapes(rest[0]).filter(|shape| begins(rest, shape.prefix));
    // A judge that needs more input may cover more than one that is sure: then the sure one waits, too.
    let mut is_open = false;
    // The judges come first, because they may cover more than a shape does.
    let found = judges.iter().map(|judge| judge(rest, before, at_end));
    for verdict in found.chain(shapes.map(|shape| token(shape, rest, before.two(), at_end))) {
        match verdict {
            MaskVerdict::No => {}
            MaskVerdict::More => is_open = true,
            found @ (MaskVerdict::Token { .. } | MaskVerdict::Header) if !is_open => return found,
            MaskVerdict::Token { .. } | MaskVerdict::Header => return MaskVerdict::More,
        }
    }
    if is_open { MaskVerdict::More } else { MaskVerdict::No }
}

type Judge = fn(&[u8], PrecedingBytes<'_>, bool) -> MaskVerdict;

/// Whether the first bytes, as far as there are any, are those of `prefix`. Most are not.
fn begins(rest: &[u8], prefix: &[u8]) -> bool {
    // Every prefix has two bytes or more.
    rest[0] == prefix[0] && rest.get(1).is_none_or(|b| *b == prefix[1])
}

/// Whether `rest` begins with `prefix`, in the same case; `None` if the input ends before that is known.
fn prefix(rest: &[u8], prefix: &[u8], at_end: bool) -> Option<bool> {
    matched(rest, prefix, at_end, |a, b| a == b)
}

/// As [`prefix`], upper and lower case aside.
fn word(rest: &[u8], word: &[u8], at_end: bool) -> Option<bool> {
    matched(rest, word, at_end, |a, b| a.eq_ignore_ascii_case(&b))
}

fn matched(rest: &[u8], wanted: &[u8], at_end: bool, is_same: fn(u8, u8) -> bool) -> Option<bool> {
    if !rest.iter().zip(wanted).all(|(a, b)| is_same(*a, *b)) {
        return Some(false);
    }
    if rest.len() >= wanted.len() {
        return Some(true);
    }
    if at_end { Some(false) } else { None }
}

/// A verdict that cannot be given before more is known.
fn open(at_end: bool) -> MaskVerdict {
    if at_end { MaskVerdict::No } else { MaskVerdict::More }
}

/// Whether a word can begin after these bytes: no letter or digit, save those that stand for a line break in quoted text, and
/// the end of a colour.
fn begins_word([a, b]: [u8; 2]) -> bool {
    // In `\nghp_...` of JSON, the `n` is a line break. In `\e[31mghp_...`, the `m` ends a colour.
    !Class::Word.has(b)
        || (a == b'\\' && matches!(b, b'n' | b'r' | b't'))
        || (b == b'm' && (a.is_ascii_digit() || a == b'['))
}

/// The first part of a JSON Web Token.
fn header(rest: &[u8], _: PrecedingBytes<'_>, at_end: bool) -> MaskVerdict {
    match prefix(rest, HEADER, at_end) {
        Some(true) => MaskVerdict::Header,
        None => MaskVerdict::More,
        Some(false) => MaskVerdict::No,
    }
}

fn token(shape: &TokenShape, rest: &[u8], before: [u8; 2], at_end: bool) -> MaskVerdict {
    match prefix(rest, shape.prefix, at_end) {
        Some(true) if !shape.is_word || begins_word(before) => {}
        None => return MaskVerdict::More,
        Some(_) => return MaskVerdict::No,
    }
    let body = &rest[shape.prefix.len()..];
    // It looks at one byte more than the least: for an exact shape, that byte tells that a longer word stands here.
    let seen = shape.of.run(&body[..body.len().min(shape.least + 1)]);
    let is_more = seen == body.len() && !at_end;
    match seen.cmp(&shape.least) {
        std::cmp::Ordering::Less if is_more => MaskVerdict::More,
        std::cmp::Ordering::Less => MaskVerdict::No,
        std::cmp::Ordering::Equal if is_more && shape.is_exact => MaskVerdict::More,
        // A longer word of the same letters is something else.
        std::cmp::Ordering::Greater if shape.is_exact => MaskVerdict::No,
        _ => MaskVerdict::Token { shown: shape.prefix.len(), hidden: Hidden::Of(shape.hidden) },
    }
}

/// A private key in PEM: what stands between its first and its last line is hidden.
fn key(rest: &[u8], before: PrecedingBytes<'_>, at_end: bool) -> MaskVerdict {
    match prefix(rest, KEY, at_end) {
        Some(true) if before.two() == *b"--" => {}
        None => return MaskVerdict::More,
        Some(_) => return MaskVerdict::No,
    }
    let line = &rest[..rest.len().min(LONGEST_LABEL)];
    // `BEGIN RSA PRIVATE KEY-----`: the label reaches to the dashes.
    let label = line.iter().position(|b| !Class::Upper.has(*b) && *b != b' ').unwrap_or(line.len());
    let is_private = line[..label].ends_with(b"PRIVATE KEY") || line[..label].ends_with(b"PRIVATE KEY BLOCK");
    match matched(&rest[label..], b"-----", at_end, |a, b| a == b) {
        _ if label == LONGEST_LABEL => MaskVerdict::No,
        Some(true) if is_private => MaskVerdict::Token { shown: label + 5, hidden: Hidden::Key(LONGEST_KEY) },
        None => MaskVerdict::More,
        Some(_) => MaskVerdict::No,
    }
}

/// A password before the host of a URL (RFC 3986, 3.2.1), or a long name there, which is a token.
fn url(rest: &[u8], _: PrecedingBytes<'_>, at_end: bool) -> MaskVerdict {
    match prefix(rest, URL, at_end) {
        Some(true) => {}
        None => return MaskVerdict::More,
        Some(false) => return MaskVerdict::No,
    }
    let body = &rest[URL.len()..];
    let body = &body[..body.len().min(LONGEST_USERINFO)];
    let is_end = |b: &u8| b.is_ascii_whitespace() || b.is_ascii_control() || b"/\"'`<>\\?#".contains(b);
    let Some(end) =
        body.iter().position(is_end).or_else(|| (at_end || body.len() == LONGEST_USERINFO).then_some(body.len()))
    else {
        return MaskVerdict::More;
    };
    // The last `@` and the first colon count: a password may hold both, as in `https://me:pass:w@rd@host`.
    let Some(at) = body[..end].iter().rposition(|b| *b == b'@') else { return MaskVerdict::No };
    match body[..at].iter().position(|b| *b == b':') {
        Some(colon) if colon + 1 < at => {
            MaskVerdict::Token { shown: URL.len() + colon + 1, hidden: Hidden::Bytes(at - colon - 1) }
        }
        None if at >= LONGEST_USER => MaskVerdict::Token { shown: URL.len(), hidden: Hidden::Bytes(at) },
        _ => MaskVerdict::No,
    }
}

/// The value of a name that is known to hold a secret.
fn named(rest: &[u8], before: PrecedingBytes<'_>, at_end: bool) -> MaskVerdict {
    let mut is_open = false;
    for name in NAMES {
        match word(rest, name, at_end) {
            // `SecretAccessKey`, as services of AWS answer.
            Some(true) if name != b"accesskey" || before.two().eq_ignore_ascii_case(b"et") => {
                return value(rest, name.len(), at_end);
            }
            None => is_open = true,
            Some(_) => {}
        }
    }
    if is_open { MaskVerdict::More } else { MaskVerdict::No }
}

fn value(rest: &[u8], from: usize, at_end: bool) -> MaskVerdict {
    let is_between = |b: &u8| matches!(b, b' ' | b'\t' | b'"' | b'\'' | b'\\' | b':' | b'=');
    let most = rest.len().min(from + MOST_BETWEEN);
    let between = rest[from..most].iter().take_while(|b| is_between(b)).count();
    let body = &rest[from + between..];
    let seen = Class::Base64.run(&body[..body.len().min(SHORTEST_VALUE)]);
    // Without a sign in between, the name is a longer one, such as `aws_secret_access_keyring`.
    if between > 0 && seen == SHORTEST_VALUE {
        return MaskVerdict::Token { shown: from + between, hidden: Hidden::Of(Class::Base64) };
    }
    if seen == body.len() { open(at_end) } else { MaskVerdict::No }
}

/// A token of at least `least` bytes of a class, which begins at `from`.
fn of_class(rest: &[u8], from: usize, (class, least): (Class, usize), at_end: bool) -> MaskVerdict {
    let body = &rest[from..];
    let seen = class.run(&body[..body.len().min(least)]);
    if seen == least {
        return MaskVerdict::Token { shown: from, hidden: Hidden::Of(class) };
    }
    if seen == body.len() { open(at_end) } else { MaskVerdict::No }
}
