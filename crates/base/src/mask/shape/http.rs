//! What is said to a server: credentials in headers, and the name and password that `curl` takes.

use super::super::preceding_bytes::PrecedingBytes;
use super::super::verdict::Hidden;
use super::assignment::{assigned_value, is_placeholder, line};
use super::{Class, MOST_BETWEEN, MaskVerdict, SHORTEST_ASSIGNED, begins_word, of_class, open, prefix, word};

const AUTHORIZATION: &[u8] = b"authorization";
const SCHEMES: [&[u8]; 3] = [b"bearer ", b"basic ", b"token "];
const SHORTEST_CREDENTIALS: usize = 8;
const SCHEMES_WITH_PARAMETERS: [&[u8]; 16] = [
    b"digest", b"aws4-hmac-sha256", b"aws", b"negotiate", b"ntlm", b"hawk", b"signature", b"apikey", b"api-key",
    b"key", b"oauth", b"dpop", b"bot", b"sharedkey", b"sharedaccesssignature", b"genie-key",
];
const SHORTEST_ALONE: usize = 16;
/// Headers whose value is a secret as a whole.
const HEADERS: [&[u8]; 10] = [
    b"cookie:", b"cookie2:", b"x-api-key:", b"x-auth-token:", b"x-auth-key:", b"x-vault-token:",
    b"x-amz-security-token:", b"private-token:", b"api-key:", b"apikey:",
];
const SHORTEST_HEADER_VALUE: usize = 4;

/// An option of `curl` that gives a name and a password.
const USERS: [&[u8]; 3] = [b"-u", b"--user", b"--proxy-user"];
const LONGEST_NAME: usize = 128;

const BEARER: &[u8] = b"bearer ";
const SHORTEST_BEARER: usize = 20;

/// `Authorization: Bearer ...`, and the other schemes: those whose credentials stand in one word, and those with parameters.
pub(super) fn authorization(rest: &[u8], before: PrecedingBytes<'_>, at_end: bool) -> MaskVerdict {
    match word(rest, AUTHORIZATION, at_end) {
        Some(true) => {}
        None => return MaskVerdict::More,
        Some(false) => return MaskVerdict::No,
    }
    let is_between = |b: &u8| matches!(b, b' ' | b'\t' | b'"' | b'\'' | b'\\' | b':' | b'=');
    let most = rest.len().min(AUTHORIZATION.len() + MOST_BETWEEN);
    let from = AUTHORIZATION.len() + rest[AUTHORIZATION.len()..most].iter().take_while(|b| is_between(b)).count();
    let mut is_open = from == rest.len() && from < AUTHORIZATION.len() + MOST_BETWEEN;
    // `Authorization: Bearer x`: these schemes have one word of credentials, and the name of the scheme is shown.
    for scheme in SCHEMES {
        match word(&rest[from..], scheme, at_end) {
            Some(true) => {
                return credentials(rest, from + scheme.len(), SHORTEST_CREDENTIALS, at_end);
            }
            None => is_open = true,
            Some(false) => {}
        }
    }
    if is_open {
        return open(at_end);
    }
    // The parameters of the other schemes end with their line, so all of it must be there.
    let Some(look) = line(rest, AUTHORIZATION.len(), at_end) else { return MaskVerdict::More };
    if from == AUTHORIZATION.len() || from >= look.len() { MaskVerdict::No } else { parameters(look, from, before) }
}

/// `Digest username="ann", response="..."`: the name of the scheme is shown. Credentials without a scheme look like a token.
fn parameters(look: &[u8], from: usize, before: PrecedingBytes<'_>) -> MaskVerdict {
    let scheme = Class::Dashed.run(&look[from..]);
    let known = SCHEMES_WITH_PARAMETERS.iter().any(|known| known.eq_ignore_ascii_case(&look[from..from + scheme]));
    if !known || look.get(from + scheme) != Some(&b' ') {
        // A word alone has to look like a token: `Authorization: required` is prose.
        let alone = Class::Token68.run(&look[from..]);
        let digits = look[from..from + alone].iter().filter(|b| b.is_ascii_digit()).count();
        if alone >= SHORTEST_ALONE && digits >= 2 {
            return MaskVerdict::Token { shown: from, hidden: Hidden::Bytes(alone) };
        }
        return MaskVerdict::No;
    }
    let value = &look[from + scheme + 1..];
    // In `curl -H 'Authorization: Digest ...'`, the quote before the name ends the header.
    let quote = before.back(0);
    let end = match quote {
        b'\'' | b'"' => value.iter().position(|b| *b == quote),
        _ => None,
    };
    let length = end.unwrap_or(value.len());
    if length < SHORTEST_CREDENTIALS || is_placeholder(value) {
        return MaskVerdict::No;
    }
    MaskVerdict::Token { shown: from + scheme + 1, hidden: Hidden::Bytes(length) }
}

/// `Cookie: ...` and headers of the kind.
pub(super) fn http_header(rest: &[u8], before: PrecedingBytes<'_>, at_end: bool) -> MaskVerdict {
    let mut is_open = false;
    for name in HEADERS {
        match word(rest, name, at_end) {
            Some(true) if begins_word(before.two()) || before.back(0) == b'-' => {
                let spaces = rest[name.len()..].iter().take(2).take_while(|b| **b == b' ').count();
                let from = name.len() + spaces;
                // What a shell puts in is no secret itself.
                if rest.get(from).is_some_and(|b| matches!(b, b'$' | b'{')) {
                    return MaskVerdict::No;
                }
                return of_class(rest, from, (Class::Line, SHORTEST_HEADER_VALUE), at_end);
            }
            None => is_open = true,
            Some(_) => {}
        }
    }
    if is_open { MaskVerdict::More } else { MaskVerdict::No }
}

/// `-u name:password`: the name is shown.
pub(super) fn user(rest: &[u8], before: PrecedingBytes<'_>, at_end: bool) -> MaskVerdict {
    let mut is_open = false;
    for name in USERS {
        match prefix(rest, name, at_end) {
            Some(true) if begins_word(before.two()) && before.back(0) != b'-' => {
                // `-u name:...`, `--user=name:...`, `-u 'name:...'`. Without such a sign it is another option: `-un`.
                let between = |b: &u8| matches!(b, b' ' | b'=' | b'"' | b'\'');
                let from = name.len() + rest[name.len()..].iter().take(2).take_while(|b| between(b)).count();
                let body = &rest[from..rest.len().min(from + LONGEST_NAME)];
                let length = body.iter().position(|b| *b == b':' || !Class::Value.has(*b));
                return match length {
                    _ if from == name.len() && rest.len() > from => MaskVerdict::No,
                    // What the shell puts in, or a second colon (`-u file://`), is no password.
                    Some(colon) if colon > 0 && body[colon] == b':' && body.get(colon + 1) != Some(&b'/') => {
                        assigned_value(rest, from + colon + 1, at_end)
                    }
                    Some(_) => MaskVerdict::No,
                    None if body.len() == LONGEST_NAME => MaskVerdict::No,
                    None => open(at_end),
                };
            }
            None => is_open = true,
            Some(_) => {}
        }
    }
    if is_open { MaskVerdict::More } else { MaskVerdict::No }
}

/// `Bearer ...` by itself, where what follows has a digit as tokens do.
pub(super) fn bearer(rest: &[u8], before: PrecedingBytes<'_>, at_end: bool) -> MaskVerdict {
    match word(rest, BEARER, at_end) {
        Some(true) if begins_word(before.two()) => {}
        None => return MaskVerdict::More,
        Some(_) => return MaskVerdict::No,
    }
    match credentials(rest, BEARER.len(), SHORTEST_BEARER, at_end) {
        MaskVerdict::Token { shown, .. } if !rest[shown..shown + SHORTEST_BEARER].iter().any(u8::is_ascii_digit) => {
            MaskVerdict::No
        }
        other => other,
    }
}

fn credentials(rest: &[u8], from: usize, shortest: usize, at_end: bool) -> MaskVerdict {
    of_class(rest, from, (Class::Token68, shortest), at_end)
}

/// A parameter of a URL that is a secret: `?key=`, `&token=`.
pub(super) fn query(rest: &[u8], _: PrecedingBytes<'_>, at_end: bool) -> MaskVerdict {
    // `?key=title` is asked of many servers.
    const QUERIES: [(&[u8], usize); 5] = [
        (b"key=", 8),
        (b"token=", SHORTEST_ASSIGNED),
        (b"auth=", SHORTEST_ASSIGNED),
        // Addresses that are signed: who has one may read.
        (b"sig=", 16),
        (b"signature=", 16),
    ];
    let mut is_open = false;
    for (name, least) in QUERIES {
        match word(&rest[1..], name, at_end) {
            Some(true) if rest.get(1 + name.len()).is_some_and(|b| matches!(b, b'$' | b'{' | b'*')) => {
                return MaskVerdict::No;
            }
            Some(true) => return of_class(rest, 1 + name.len(), (Class::Value, least), at_end),
            None => is_open = true,
            Some(false) => {}
        }
    }
    if is_open { MaskVerdict::More } else { MaskVerdict::No }
}
