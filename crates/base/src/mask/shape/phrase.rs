//! Secrets that are told by what stands around them.

use super::super::preceding_bytes::PrecedingBytes;
use super::super::verdict::Hidden;
use super::assignment::{is_placeholder, line};
use super::{Class, MaskVerdict, begins_word, open, word};

/// The most bytes of white space, quotes and commas between a key's id and its secret in a file of credentials.
const MOST_BETWEEN: usize = 6;
/// The length of an AWS key's id: <https://docs.aws.amazon.com/IAM/latest/UserGuide/id_credentials_access-keys.html>
const AWS_ID: usize = 20;
const AWS_SECRET: usize = 40;

/// A key's id of AWS with the secret beside it, as in a table or a message.
pub(super) fn pair(rest: &[u8], _: PrecedingBytes<'_>, at_end: bool) -> MaskVerdict {
    const IDS: [&[u8]; 2] = [b"AKIA", b"ASIA"];
    if !IDS.iter().any(|id| id.starts_with(&rest[..rest.len().min(4)])) {
        return MaskVerdict::No;
    }
    if Class::Upper.run(&rest[..rest.len().min(AWS_ID)]) < rest.len().min(AWS_ID) {
        return MaskVerdict::No;
    }
    let is_between = |b: &u8| matches!(b, b' ' | b'\t' | b',' | b';' | b':' | b'"' | b'\'' | b'|');
    let between = rest.iter().skip(AWS_ID).take(MOST_BETWEEN).take_while(|b| is_between(b)).count();
    let from = AWS_ID + between;
    let body = rest.get(from..).unwrap_or_default();
    let seen = Class::Base64.run(&body[..body.len().min(AWS_SECRET + 1)]);
    // It stays open until the byte after the secret is known: a longer word is something else.
    let is_open = rest.len() <= AWS_ID || seen == body.len() && seen <= AWS_SECRET && between < MOST_BETWEEN;
    if is_open && !at_end {
        return MaskVerdict::More;
    }
    if between == 0 || seen != AWS_SECRET {
        return MaskVerdict::No;
    }
    MaskVerdict::Token { shown: 4, hidden: Hidden::Bytes(from + AWS_SECRET - 4) }
}

/// `login ann password ...`, a line of `.netrc`.
pub(super) fn login(rest: &[u8], before: PrecedingBytes<'_>, at_end: bool) -> MaskVerdict {
    const LOGIN: &[u8] = b"login";
    match word(rest, LOGIN, at_end) {
        Some(true) if begins_word(before.two()) => {}
        None => return MaskVerdict::More,
        Some(_) => return MaskVerdict::No,
    }
    let Some(look) = line(rest, LOGIN.len(), at_end) else { return MaskVerdict::More };
    let is_space = |b: &u8| matches!(b, b' ' | b'\t');
    let mut at = LOGIN.len();
    // The name, the word, and what is between them.
    for wanted in [None, Some(b"password".as_slice())] {
        let spaces = look[at..].iter().take_while(|b| is_space(b)).count();
        at += spaces;
        let length = look[at..].iter().take_while(|b| !is_space(b)).count();
        if spaces == 0 || length == 0 || wanted.is_some_and(|wanted| &look[at..at + length] != wanted) {
            return MaskVerdict::No;
        }
        at += length;
    }
    let spaces = look[at..].iter().take_while(|b| is_space(b)).count();
    let value = &look[at + spaces..];
    let length = value.iter().take_while(|b| !b.is_ascii_whitespace()).count();
    if spaces == 0 || length == 0 || is_placeholder(value) {
        return MaskVerdict::No;
    }
    MaskVerdict::Token { shown: at + spaces, hidden: Hidden::Bytes(length) }
}

/// `IDENTIFIED BY '...'` of SQL.
pub(super) fn identified(rest: &[u8], _: PrecedingBytes<'_>, at_end: bool) -> MaskVerdict {
    const IDENTIFIED: &[u8] = b"identified ";
    match word(rest, IDENTIFIED, at_end) {
        Some(true) => {}
        None => return MaskVerdict::More,
        Some(false) => return MaskVerdict::No,
    }
    let Some(look) = line(rest, IDENTIFIED.len(), at_end) else { return MaskVerdict::More };
    let Some(quote) = look.iter().position(|b| matches!(b, b'\'' | b'"')) else { return MaskVerdict::No };
    // The forms are `IDENTIFIED BY '...'` and, with a plugin, `IDENTIFIED WITH x BY '...'` or `IDENTIFIED WITH x AS '...'`.
    let said = look[IDENTIFIED.len()..quote].to_ascii_lowercase();
    let value = &look[quote + 1..];
    let length = value.iter().position(|b| *b == look[quote]);
    match length {
        Some(length) if length > 0 && (said.ends_with(b"by ") || said.ends_with(b"as ")) && !is_placeholder(value) => {
            MaskVerdict::Token { shown: quote + 1, hidden: Hidden::Bytes(length) }
        }
        _ => MaskVerdict::No,
    }
}

/// The password of an Oracle URL: `jdbc:oracle:thin:ann/...@host`
pub(super) fn thin(rest: &[u8], _: PrecedingBytes<'_>, at_end: bool) -> MaskVerdict {
    const THIN: &[u8] = b"thin:";
    match word(rest, THIN, at_end) {
        Some(true) => {}
        None => return MaskVerdict::More,
        Some(false) => return MaskVerdict::No,
    }
    let Some(look) = line(rest, THIN.len(), at_end) else { return MaskVerdict::More };
    let name = Class::Dotted.run(&look[THIN.len()..]);
    let from = THIN.len() + name + 1;
    let length = look.get(from..).and_then(|body| body.iter().position(|b| *b == b'@' || b.is_ascii_whitespace()));
    match length {
        Some(length) if length > 0 && name > 0 && look[from - 1] == b'/' && look[from + length] == b'@' => {
            MaskVerdict::Token { shown: from, hidden: Hidden::Bytes(length) }
        }
        _ => MaskVerdict::No,
    }
}

/// A bot's token of Telegram: its number, and 35 characters that begin so.
pub(super) fn telegram(rest: &[u8], before: PrecedingBytes<'_>, at_end: bool) -> MaskVerdict {
    const START: &[u8] = b":AA";
    // A bot's number has eight digits or more, so its last eight are checked.
    let digits = (0..8).take_while(|places| before.back(*places).is_ascii_digit()).count();
    after(rest, START, (digits == 8, 33, Class::Dashed), at_end)
}

/// A client's secret of Azure: three characters, a digit, `Q~` and 31 or more.
pub(super) fn azure(rest: &[u8], before: PrecedingBytes<'_>, at_end: bool) -> MaskVerdict {
    let is_it = before.back(0).is_ascii_digit() && Class::Token68.has(before.back(1));
    after(rest, b"Q~", (is_it, 31, Class::Token68), at_end)
}

fn after(rest: &[u8], start: &[u8], (is_it, least, class): (bool, usize, Class), at_end: bool) -> MaskVerdict {
    if !is_it || !rest.starts_with(&start[..start.len().min(rest.len())]) {
        return MaskVerdict::No;
    }
    let body = rest.get(start.len()..).unwrap_or_default();
    let seen = class.run(&body[..body.len().min(least)]);
    match seen {
        _ if seen == least => MaskVerdict::Token { shown: start.len(), hidden: Hidden::Of(class) },
        _ if seen == body.len() => open(at_end),
        _ => MaskVerdict::No,
    }
}
