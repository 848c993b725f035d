//! Where a token begins and how much of it is hidden.

use super::token::{Class, SHAPES, Shape};
use super::{Hidden, LONGEST_KEY};

mod http;

use http::{authorization, bearer, http_header, user};

/// What the bytes at a place are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// No token begins here.
    No,
    /// That cannot be said yet.
    More,
    /// The first part of a JSON Web Token may begin here.
    Header,
    /// A token, of which so many bytes are shown.
    Token { shown: usize, hidden: Hidden },
}

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
const SHORTEST_VALUE: usize = 16;
const MOST_BETWEEN: usize = 8;

/// Names that are assigned a secret without a shape, whatever stands before them: `DB_PASSWORD=...`, `--api-key ...`, `"secret": "..."`.
const ASSIGNED: [&[u8]; 11] = [
    b"password",
    b"passwd",
    b"passphrase",
    b"secret",
    b"api_key",
    b"api-key",
    b"apikey",
    b"access_key",
    b"access_token",
    b"auth_token",
    b"token",
];
const SHORTEST_ASSIGNED: usize = 4;

/// The pairs of bytes with which something begins that [`verdict`] knows, a bit each, and single bytes that begin a pair.
static PAIRS: ([u64; 1024], [bool; 256]) = pairs();

const fn pairs() -> ([u64; 1024], [bool; 256]) {
    const OTHERS: [&[u8; 2]; 49] = [
        b"ey", b"BE", b"Be", b"be", b":/", b"aw", b"AW", b"Aw", b"Ac", b"ac", b"AC", b"au", b"Au", b"AU",
        b"bE", b"pa", b"Pa", b"PA", b"se", b"Se", b"SE", b"to", b"To", b"TO", b"ap", b"Ap", b"AP", b"co",
        b"Co", b"CO", b"x-", b"X-", b"pr", b"Pr", b"PR", b"-u", b"--", b"ys", b"db", b"hp", b"-c", b"-p",
        b"-a", b"?k", b"&k", b"?t", b"&t", b"?a", b"&a",
    ];
    let (mut bits, mut firsts) = ([0; 1024], [false; 256]);
    let mut at = 0;
    while at < SHAPES.len() + OTHERS.len() {
        let pair = if at < SHAPES.len() {
            [SHAPES[at].prefix[0], SHAPES[at].prefix[1]]
        } else {
            *OTHERS[at - SHAPES.len()]
        };
        let number = (pair[0] as usize) << 8 | pair[1] as usize;
        bits[number / 64] |= 1 << (number % 64);
        firsts[pair[0] as usize] = true;
        at += 1;
    }
    (bits, firsts)
}

/// Where in the input something may begin, that must be looked at with care.
pub(super) fn candidate(input: &[u8]) -> Option<usize> {
    let (bits, firsts) = &PAIRS;
    let is_hit = |pair: &[u8]| {
        let number = usize::from(pair[0]) << 8 | usize::from(pair[1]);
        bits[number / 64] >> (number % 64) & 1 == 1
    };
    input
        .windows(2)
        .position(is_hit)
        .or_else(|| input.last().filter(|last| firsts[usize::from(**last)]).map(|_| input.len() - 1))
}

/// What begins at the beginning of `rest`, which follows the bytes `before`. `at_end`: nothing follows it.
pub(super) fn verdict(rest: &[u8], before: [u8; 2], at_end: bool) -> Verdict {
    // Told apart by the first byte: most of what is looked at is nothing, and is looked at often.
    let (judges, shapes): (&[Judge], &[Shape]) = match rest[0] {
        b'e' => (&[header], &[]),
        b':' => (&[url], &[]),
        b'B' | b'b' => (&[key, bearer], &[]),
        b'a' => (&[named, authorization, assigned], &[]),
        b'A' => (&[named, authorization, assigned], SHAPES),
        b'p' | b'P' => (&[assigned, http_header], SHAPES),
        b's' | b'S' | b't' | b'T' => (&[assigned], SHAPES),
        b'c' | b'C' | b'x' | b'X' => (&[http_header], SHAPES),
        b'-' => (&[user], &[]),
        b'?' | b'&' => (&[query], &[]),
        _ => (&[], SHAPES),
    };
    let shapes = shapes.iter().filter(|shape| begins(rest, shape.prefix));
    let shapes = shapes.map(|shape| token(shape, rest, before, at_end));
    let mut is_open = false;
    for verdict in shapes.chain(judges.iter().map(|judge| judge(rest, before, at_end))) {
        match verdict {
            Verdict::No => {}
            Verdict::More => is_open = true,
            found @ (Verdict::Token { .. } | Verdict::Header) => return found,
        }
    }
    if is_open { Verdict::More } else { Verdict::No }
}

type Judge = fn(&[u8], [u8; 2], bool) -> Verdict;

/// Whether the first bytes, as far as there are any, are those of `prefix`. Most are not.
fn begins(rest: &[u8], prefix: &[u8]) -> bool {
    rest[0] == prefix[0] && rest.get(1).is_none_or(|b| *b == prefix[1])
}

/// Whether `rest` begins so, upper and lower case aside; `None`: it may, as far as it is known.
fn prefix(rest: &[u8], prefix: &[u8], at_end: bool) -> Option<bool> {
    matched(rest, prefix, at_end, |a, b| a == b)
}

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
fn open(at_end: bool) -> Verdict {
    if at_end { Verdict::No } else { Verdict::More }
}

/// Whether a word can begin after these bytes: no letter or digit, save those that stand for a line break in quoted text, and
/// the end of a colour.
fn begins_word([a, b]: [u8; 2]) -> bool {
    !Class::Word.has(b)
        || (a == b'\\' && matches!(b, b'n' | b'r' | b't'))
        || (b == b'm' && (a.is_ascii_digit() || a == b'['))
}

/// The first part of a JSON Web Token.
fn header(rest: &[u8], _: [u8; 2], at_end: bool) -> Verdict {
    match prefix(rest, HEADER, at_end) {
        Some(true) => Verdict::Header,
        None => Verdict::More,
        Some(false) => Verdict::No,
    }
}

fn token(shape: &Shape, rest: &[u8], before: [u8; 2], at_end: bool) -> Verdict {
    match prefix(rest, shape.prefix, at_end) {
        Some(true) if !shape.is_strict || begins_word(before) => {}
        None => return Verdict::More,
        Some(_) => return Verdict::No,
    }
    let body = &rest[shape.prefix.len()..];
    let seen = shape.of.run(&body[..body.len().min(shape.least + 1)]);
    let is_more = seen == body.len() && !at_end;
    match seen.cmp(&shape.least) {
        std::cmp::Ordering::Less if is_more => Verdict::More,
        std::cmp::Ordering::Less => Verdict::No,
        std::cmp::Ordering::Equal if is_more && shape.is_strict => Verdict::More,
        // A longer word of the same letters is something else.
        std::cmp::Ordering::Greater if shape.is_strict && shape.of == shape.hidden => Verdict::No,
        _ => Verdict::Token { shown: shape.prefix.len(), hidden: Hidden::Of(shape.hidden) },
    }
}

/// A private key in PEM: what stands between its first and its last line is hidden.
fn key(rest: &[u8], before: [u8; 2], at_end: bool) -> Verdict {
    match prefix(rest, KEY, at_end) {
        Some(true) if before == *b"--" => {}
        None => return Verdict::More,
        Some(_) => return Verdict::No,
    }
    let line = &rest[..rest.len().min(LONGEST_LABEL)];
    let label = line.iter().position(|b| !Class::Upper.has(*b) && *b != b' ').unwrap_or(line.len());
    let is_private = line[..label].ends_with(b"PRIVATE KEY") || line[..label].ends_with(b"PRIVATE KEY BLOCK");
    match matched(&rest[label..], b"-----", at_end, |a, b| a == b) {
        _ if label == LONGEST_LABEL => Verdict::No,
        Some(true) if is_private => Verdict::Token { shown: label + 5, hidden: Hidden::Key(LONGEST_KEY) },
        None => Verdict::More,
        Some(_) => Verdict::No,
    }
}

/// A password before the host of a URL (RFC 3986, 3.2.1), or a long name there, which is a token.
fn url(rest: &[u8], _: [u8; 2], at_end: bool) -> Verdict {
    match prefix(rest, URL, at_end) {
        Some(true) => {}
        None => return Verdict::More,
        Some(false) => return Verdict::No,
    }
    let body = &rest[URL.len()..];
    let body = &body[..body.len().min(LONGEST_USERINFO)];
    let is_end = |b: &u8| b.is_ascii_whitespace() || b.is_ascii_control() || b"/\"'`<>\\?#".contains(b);
    let Some(end) = body
        .iter()
        .position(is_end)
        .or_else(|| (at_end || body.len() == LONGEST_USERINFO).then_some(body.len()))
    else {
        return Verdict::More;
    };
    let Some(at) = body[..end].iter().rposition(|b| *b == b'@') else { return Verdict::No };
    match body[..at].iter().position(|b| *b == b':') {
        Some(colon) if colon + 1 < at => {
            Verdict::Token { shown: URL.len() + colon + 1, hidden: Hidden::Bytes(at - colon - 1) }
        }
        None if at >= LONGEST_USER => Verdict::Token { shown: URL.len(), hidden: Hidden::Bytes(at) },
        _ => Verdict::No,
    }
}

/// The value of a name that is known to hold a secret.
fn named(rest: &[u8], before: [u8; 2], at_end: bool) -> Verdict {
    let mut is_open = false;
    for name in NAMES {
        match word(rest, name, at_end) {
            // `SecretAccessKey`, as services of AWS answer.
            Some(true) if name != b"accesskey" || before.eq_ignore_ascii_case(b"et") => {
                return value(rest, name.len(), at_end);
            }
            None => is_open = true,
            Some(_) => {}
        }
    }
    if is_open { Verdict::More } else { Verdict::No }
}

fn value(rest: &[u8], from: usize, at_end: bool) -> Verdict {
    let is_between = |b: &u8| matches!(b, b' ' | b'\t' | b'"' | b'\'' | b'\\' | b':' | b'=');
    let most = rest.len().min(from + MOST_BETWEEN);
    let between = rest[from..most].iter().take_while(|b| is_between(b)).count();
    let body = &rest[from + between..];
    let seen = Class::Base64.run(&body[..body.len().min(SHORTEST_VALUE)]);
    if between > 0 && seen == SHORTEST_VALUE {
        return Verdict::Token { shown: from + between, hidden: Hidden::Of(Class::Base64) };
    }
    if seen == body.len() { open(at_end) } else { Verdict::No }
}

/// The value of a name that people give to secrets: assigned as in a shell or in JSON, or given to an option.
fn assigned(rest: &[u8], before: [u8; 2], at_end: bool) -> Verdict {
    let mut is_open = false;
    for name in ASSIGNED {
        match word(rest, name, at_end) {
            // `a token=` is said of many things.
            Some(true) if name != b"token" || matches!(before[1], b'_' | b'-') => {
                return assignment(rest, name.len(), before, at_end);
            }
            None => is_open = true,
            Some(_) => {}
        }
    }
    if is_open { Verdict::More } else { Verdict::No }
}

fn assignment(rest: &[u8], from: usize, before: [u8; 2], at_end: bool) -> Verdict {
    let count = |at: usize, most: usize, is_it: fn(u8) -> bool| {
        rest[at..rest.len().min(at + most)].iter().take_while(|b| is_it(**b)).count()
    };
    let is_quote = |b: u8| matches!(b, b'"' | b'\'' | b'\\');
    let quoted = count(from, 2, is_quote);
    let spaced = from + quoted + count(from + quoted, 2, |b| b == b' ');
    let is_option = before == *b"--" && quoted == 0 && spaced > from;
    let at = match rest.get(spaced) {
        None => return open(at_end),
        Some(b'=') if spaced == from + quoted => spaced + 1,
        Some(b':') if quoted == 0 && begins(rest, b"pa") && !is_option => {
            let at = spaced + 1 + count(spaced + 1, 2, |b| b == b' ');
            return said(rest, at + count(at, 2, is_quote), at_end);
        }
        Some(b':') if quoted > 0 => spaced + 1 + count(spaced + 1, 2, |b| b == b' '),
        Some(_) if is_option => spaced,
        Some(_) => return Verdict::No,
    };
    assigned_value(rest, at + count(at, 2, is_quote), at_end)
}

/// `password: ...`, which people also write before prose: a word with letters and digits, as passwords have.
fn said(rest: &[u8], at: usize, at_end: bool) -> Verdict {
    const LONGEST: usize = 64;
    let body = &rest[at..rest.len().min(at + LONGEST)];
    let word = &body[..Class::Value.run(body)];
    let has = |is_it: fn(&u8) -> bool| word.iter().any(is_it);
    if has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic) && word.len() >= SHORTEST_ASSIGNED {
        return assigned_value(rest, at, at_end);
    }
    if word.len() == body.len() && body.len() < LONGEST { open(at_end) } else { Verdict::No }
}

/// A parameter of a URL that is a secret: `?key=`, `&token=`.
fn query(rest: &[u8], _: [u8; 2], at_end: bool) -> Verdict {
    // `?key=title` is asked of many servers.
    const QUERIES: [(&[u8], usize); 3] =
        [(b"key=", 8), (b"token=", SHORTEST_ASSIGNED), (b"auth=", SHORTEST_ASSIGNED)];
    let mut is_open = false;
    for (name, least) in QUERIES {
        match word(&rest[1..], name, at_end) {
            Some(true) if rest.get(1 + name.len()).is_some_and(|b| matches!(b, b'$' | b'{' | b'*')) => {
                return Verdict::No;
            }
            Some(true) => return of_class(rest, 1 + name.len(), (Class::Value, least), at_end),
            None => is_open = true,
            Some(false) => {}
        }
    }
    if is_open { Verdict::More } else { Verdict::No }
}

/// A value without a shape, from a place on.
fn assigned_value(rest: &[u8], at: usize, at_end: bool) -> Verdict {
    let body = &rest[at..];
    // What a shell puts in is no secret itself.
    if body.first().is_some_and(|b| matches!(b, b'$' | b'{' | b'*' | b'-')) {
        return Verdict::No;
    }
    of_class(rest, at, (Class::Value, SHORTEST_ASSIGNED), at_end)
}

/// At least so many bytes of a class.
fn of_class(rest: &[u8], from: usize, (class, least): (Class, usize), at_end: bool) -> Verdict {
    let body = &rest[from..];
    let seen = class.run(&body[..body.len().min(least)]);
    if seen == least {
        return Verdict::Token { shown: from, hidden: Hidden::Of(class) };
    }
    if seen == body.len() { open(at_end) } else { Verdict::No }
}
