//! Names that people give to secrets, and the values beside them, as they stand in shells, settings, code and prose.
//!
//! What counts as a value depends on how sure the name is and how it is joined: `DB_PASSWORD=x` is one whatever it is, and what follows
//! `the password is` has to look like one.

use super::super::preceding_bytes::PrecedingBytes;
use super::super::verdict::Hidden;
use super::{Class, MaskVerdict, SHORTEST_ASSIGNED, word};

mod join;

use join::{Join, Joined};

/// How many bytes from its name on a value is searched. The engine waits no longer for the end of a line: a prompt that asks for a password
/// must appear before the answer is typed.
const WINDOW: usize = 256;
/// No password that stands alone is longer.
const LONGEST_WORD: usize = 128;

/// How sure a name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    /// It is always a secret's.
    Password,
    Secret,
    /// The id of a key is called so as well: `AccessKey: AKIA...`.
    Access,
    /// Many things are called so: `a token=` in a parser.
    Token,
    /// A secret with a word before it alone: `signing_key`.
    Key,
    /// Not within a word: `bypass`, `author`.
    Short,
}

/// Names, the longer before those that they begin with. A space stands for any sign between two words, or for none.
const WORDS: [(&[u8], Name); 21] = [
    (b"password", Name::Password),
    (b"passwd", Name::Password),
    (b"passphrase", Name::Password),
    (b"passcode", Name::Password),
    (b"pass", Name::Short),
    (b"pwd", Name::Short),
    (b"secret", Name::Secret),
    (b"credentials", Name::Token),
    (b"credential", Name::Token),
    (b"api key", Name::Secret),
    (b"api secret", Name::Secret),
    (b"api token", Name::Secret),
    (b"access key", Name::Access),
    (b"access token", Name::Secret),
    (b"account key", Name::Secret),
    (b"private key", Name::Secret),
    (b"auth token", Name::Secret),
    (b"auth", Name::Short),
    (b"token", Name::Token),
    (b"key", Name::Key),
    (b"signature", Name::Key),
];

/// What such a name may end with and still be one; `password_file`, `secret_name` and `token_type` name something else.
const ENDINGS: [&[u8]; 18] = [
    b"key", b"base", b"value", b"token", b"string", b"str", b"text", b"production", b"prod", b"staging", b"dev",
    b"test", b"live", b"main", b"root", b"admin", b"new", b"old",
];

/// The line from the name on, to its end or to the end of the window. `None`: the rest of the line has not arrived yet.
pub(super) fn line(rest: &[u8], name: usize, at_end: bool) -> Option<&[u8]> {
    let near = &rest[..rest.len().min(WINDOW)];
    let is_end = |b: &u8| matches!(b, b'\n' | b'\r');
    let Some(mut end) = near.iter().position(is_end) else {
        return (at_end || near.len() == WINDOW).then_some(near);
    };
    // A list of names and values in YAML has the value in the next line.
    if near.get(name..end).is_some_and(|left| left.iter().all(|b| matches!(b, b'"' | b'\'' | b' '))) {
        let next = near[end + 1..].iter().position(is_end);
        match next {
            Some(next) => end += 1 + next,
            None if at_end || near.len() == WINDOW => end = near.len(),
            None => return None,
        }
    }
    Some(&near[..end])
}

/// The value of a name that people give to secrets: assigned as in a shell or in JSON, given to an option, or said.
pub(super) fn assigned(rest: &[u8], before: PrecedingBytes<'_>, at_end: bool) -> MaskVerdict {
    for (wanted, name) in WORDS {
        match spelled(rest, wanted, at_end) {
            None => return MaskVerdict::More,
            Some(0) => {}
            Some(length) => {
                // In `bypass`, `pass` is not a name. A later name of the list may fit.
                if !is_apart(name, rest, before) {
                    continue;
                }
                let Some(look) = line(rest, length, at_end) else { return MaskVerdict::More };
                let Some(end) = ending(look, length) else { continue };
                return value(name, look, end, before);
            }
        }
    }
    MaskVerdict::No
}

/// How many bytes a name takes, spelled in any way; 0: it is another.
fn spelled(rest: &[u8], wanted: &[u8], at_end: bool) -> Option<usize> {
    let Some(gap) = wanted.iter().position(|b| *b == b' ') else {
        return word(rest, wanted, at_end).map(|is_it| if is_it { wanted.len() } else { 0 });
    };
    if !word(rest, &wanted[..gap], at_end)? {
        return Some(0);
    }
    // `api key`, `api_key`, `api-key`, `api.key`, and `apiKey`.
    let between = usize::from(rest.get(gap).is_some_and(|b| matches!(b, b' ' | b'_' | b'-' | b'.')));
    let last = &wanted[gap + 1..];
    if rest.len() == gap + between {
        return if at_end { Some(0) } else { None };
    }
    word(&rest[gap + between..], last, at_end).map(|is_it| if is_it { gap + between + last.len() } else { 0 })
}

/// Whether it is joined to what stands before it in one name: `db_`, `db-`, `db.`, or `dbPassword`.
fn is_joined(rest: &[u8], before: PrecedingBytes<'_>) -> bool {
    let b = before.back(0);
    matches!(b, b'_' | b'-' | b'.') && Class::Alnum.has(before.back(1))
        || rest[0].is_ascii_uppercase() && (b.is_ascii_lowercase() || b.is_ascii_digit())
        || rest[0].is_ascii_lowercase() && b == b'_'
}

/// Whether a name that many things have can be meant here.
fn is_apart(name: Name, rest: &[u8], before: PrecedingBytes<'_>) -> bool {
    match name {
        Name::Password | Name::Secret | Name::Access | Name::Token => true,
        // `-storepass`: an option of one word.
        Name::Short => !Class::Word.has(before.back(0)) || is_joined(rest, before) || is_option(before),
        Name::Key => is_joined(rest, before) && !is_access(before),
    }
}

/// Whether `access` stands directly before, which decides for itself.
fn is_access(before: PrecedingBytes<'_>) -> bool {
    let gap = usize::from(!before.back(0).is_ascii_alphanumeric());
    b"access".iter().rev().enumerate().all(|(at, b)| before.back(at + gap).eq_ignore_ascii_case(b))
}

/// Whether the name is an option's: a dash begins it, or two, after whatever a line break in quoted text left there.
fn is_option(before: PrecedingBytes<'_>) -> bool {
    let name = before.name();
    let is_dash = |places: usize| before.back(places) == b'-';
    // In `--db-password`, the two dashes may be anywhere in the name. One dash, as in `-storepass`, must begin it.
    let is_double = (1..name).any(|places| is_dash(places) && is_dash(places - 1));
    is_double || name > 0 && is_dash(name - 1) && !Class::Word.has(before.back(name))
}

/// Where the name ends, with words after it that belong to it; `None`: it is the name of something else.
fn ending(look: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    // `SECRET_KEY_BASE`, `tokenProd`, `password2`: up to three more parts belong to the name.
    for _ in 0..3 {
        let gap = usize::from(look.get(at).is_some_and(|b| matches!(b, b'_' | b'-' | b'.')));
        let rest = &look[at + gap..];
        let digits = rest.iter().take(3).take_while(|b| b.is_ascii_digit()).count();
        let word = ENDINGS.iter().find(|word| {
            rest.get(..word.len()).is_some_and(|rest| rest.eq_ignore_ascii_case(word))
                && (gap > 0 || rest[0].is_ascii_uppercase() || **word == b"key" || **word == b"token")
        });
        at += match word {
            Some(word) => gap + word.len(),
            None if digits > 0 => gap + digits,
            None => break,
        };
    }
    let is_over = look.get(at).is_none_or(|b| !Class::Dashed.has(*b) && b.is_ascii());
    is_over.then_some(at)
}

fn value(name: Name, look: &[u8], end: usize, before: PrecedingBytes<'_>) -> MaskVerdict {
    let is_option = is_option(before);
    let Some(joined) = join::joined(look, end, is_option, before) else { return MaskVerdict::No };
    let body = &look[joined.at..];
    if body.is_empty() || is_placeholder(body) {
        return MaskVerdict::No;
    }
    // `PWD=/home/me` is the directory that a shell works in.
    if name == Name::Short && look[..3].eq_ignore_ascii_case(b"pwd") && matches!(body[0], b'/' | b'~' | b'.') {
        return MaskVerdict::No;
    }
    let is_sure = match name {
        Name::Password | Name::Secret | Name::Access => true,
        Name::Token => is_joined(look, before) || is_option,
        Name::Short => !look[..end].eq_ignore_ascii_case(b"auth"),
        Name::Key => return key(&joined, body),
    };
    // Quotes tell where a value ends, so less is asked of what they hold.
    if let Some(quoted) = joined.quoted(body) {
        return of_quoted(name, is_sure, &joined, quoted);
    }
    let bare = bare(body);
    let is_header = is_sure && (0..before.name()).any(|at| before.back(at).eq_ignore_ascii_case(&b'x'));
    let is_one = match joined.join {
        Join::Assigned | Join::Dictionary | Join::Option | Join::Pair if is_sure => true,
        Join::Element => return element(look, joined.at),
        Join::Said if is_header && begins_with_x(before) => true,
        Join::Said if name == Name::Short && look[0].is_ascii_uppercase() && !is_joined(look, before) => false,
        // The id of a key has the same name, and 20 bytes. Its secret has 40.
        Join::Said if name == Name::Access => is_mixed(bare, 32),
        Join::Said if name == Name::Password => is_mixed(bare, SHORTEST_ASSIGNED),
        Join::Spaced | Join::Said if is_sure => is_mixed(bare, 6),
        Join::Space if name == Name::Password => is_mixed(bare, 8),
        Join::Space => false,
        _ => is_mixed(bare, 8),
    };
    let from = (joined.at, Class::Secret);
    if !is_one || bare.len() < SHORTEST_ASSIGNED {
        return MaskVerdict::No;
    }
    MaskVerdict::Token { shown: from.0, hidden: Hidden::Of(from.1) }
}

/// `X-Vault-Token`, `x-auth-key`: a header of one's own.
fn begins_with_x(before: PrecedingBytes<'_>) -> bool {
    let name = before.name();
    name > 1 && before.back(name - 1).eq_ignore_ascii_case(&b'x') && before.back(name - 2) == b'-'
}

/// The word at a place that no quotes hold together.
fn bare(body: &[u8]) -> &[u8] {
    let near = &body[..body.len().min(LONGEST_WORD)];
    let word = &near[..Class::Secret.run(near)];
    // A call, a type, a path of modules or a place in a list is code.
    let after = &near[word.len()..];
    let is_code = after.starts_with(b"(") || after.starts_with(b" = ") || word.windows(2).any(|pair| pair == b"::");
    if is_code || word.ends_with(b"]") && word.contains(&b'[') { b"" } else { word }
}

/// Letters and digits, as passwords have and prose has not.
fn is_mixed(word: &[u8], least: usize) -> bool {
    let has = |is_it: fn(&u8) -> bool| word.iter().any(is_it);
    // Paths mix letters and digits as well: `src/v2.rs`, `/usr/lib64`.
    let is_path = word.contains(&b'/') && (word.contains(&b'.') || matches!(word[0], b'/' | b'~'));
    word.len() >= least && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic) && !is_path
}

fn of_quoted(name: Name, is_sure: bool, joined: &Joined, quoted: &[u8]) -> MaskVerdict {
    let has_space = quoted.iter().any(u8::is_ascii_whitespace);
    let is_one = match joined.join {
        // A password may be a phrase, as in `"correct horse battery staple"`. Other secrets have no spaces.
        Join::Assigned | Join::Dictionary | Join::Option | Join::Pair if is_sure => {
            quoted.len() >= SHORTEST_ASSIGNED && !has_space || name == Name::Password && quoted.len() >= 8
        }
        Join::Spaced | Join::Said if is_sure => quoted.len() >= 6 && !has_space,
        Join::Call if is_sure => is_mixed(quoted, 6) && !has_space,
        Join::Space if name == Name::Password => is_mixed(quoted, 6) && !has_space,
        Join::Space => false,
        _ => is_mixed(quoted, 8) && !has_space,
    };
    // A URL is left to the judge of URLs, which hides no more than its password.
    if !is_one || quoted.windows(3).any(|three| three == b"://") {
        return MaskVerdict::No;
    }
    MaskVerdict::Token { shown: joined.at, hidden: Hidden::Bytes(quoted.len()) }
}

/// The value of a name that is a secret's only if it looks like one.
fn key(joined: &Joined, body: &[u8]) -> MaskVerdict {
    const SHORTEST: usize = 16;
    let value = joined.quoted(body).unwrap_or_else(|| bare(body));
    let digits = value.iter().filter(|b| b.is_ascii_digit()).count();
    let letters = value.iter().filter(|b| b.is_ascii_alphabetic()).count();
    let is_random = value.len() >= SHORTEST && digits >= 3 && letters >= 3 && is_mixed(value, SHORTEST);
    let is_one_word = value.iter().all(|b| Class::Token68.has(*b));
    if is_random && is_one_word && !matches!(joined.join, Join::Space | Join::Element) {
        return MaskVerdict::Token { shown: joined.at, hidden: Hidden::Bytes(value.len()) };
    }
    MaskVerdict::No
}

/// The text of an XML element: `<password>...</password>`
fn element(look: &[u8], at: usize) -> MaskVerdict {
    let length = look[at..].iter().position(|b| *b == b'<').unwrap_or(0);
    if length >= SHORTEST_ASSIGNED && look[at + length..].starts_with(b"</") {
        return MaskVerdict::Token { shown: at, hidden: Hidden::Bytes(length) };
    }
    MaskVerdict::No
}

/// What stands for a value, and is none: what a shell or a template puts in, what was masked, or nothing.
pub(super) fn is_placeholder(body: &[u8]) -> bool {
    let starts = |with: &str| body.starts_with(with.as_bytes());
    matches!(body.first(), None | Some(b'$' | b'{' | b'*' | b'-' | b'<' | b'[' | b'%' | b'('))
        || starts("…")
        || starts("...")
        || starts("#{")
}

/// A value without a shape, from a place on.
pub(super) fn assigned_value(rest: &[u8], at: usize, at_end: bool) -> MaskVerdict {
    let body = &rest[at..];
    if is_placeholder(body) && !body.is_empty() {
        return MaskVerdict::No;
    }
    super::of_class(rest, at, (Class::Value, SHORTEST_ASSIGNED), at_end)
}
