//! Git's wildcards: `?`, `*`, `**`, classes and escapes, byte by byte, as git's own matcher reads them, oddities included.
//!
//! There are no braces. What is malformed (an open class, a class that has no such name, a last backslash) matches nothing.

/// A pattern with wildcards.
#[derive(Debug)]
pub(super) struct Wild {
    tokens: Vec<Token>,
    fold: bool,
}

#[derive(Debug)]
enum Token {
    Byte(u8),
    /// Any byte but a slash.
    One,
    Class(Box<Class>),
    /// Any bytes but slashes.
    Star,
    /// Any bytes, slashes too.
    Deep,
    /// Nothing, or any bytes and a slash after them.
    Directories,
    /// What is malformed from here on.
    Never,
}

/// The bytes of a class.
#[derive(Debug)]
struct Class([bool; 256]);

/// What the stars at a place are, and how long.
fn stars(pattern: &[u8], at: usize, of_paths: bool) -> (Token, usize) {
    let length = pattern[at..].iter().take_while(|byte| **byte == b'*').count();
    let before = at.checked_sub(1).map(|before| pattern[before]);
    let after = &pattern[at + length..];
    // An escaped slash after the stars is a slash to git as well.
    let is_whole = length > 1
        && matches!(before, None | Some(b'/'))
        && (after.is_empty() || after.starts_with(b"/") || after.starts_with(b"\\/"));
    // In a path: `**/b` is directories, `a/**` is deep, `a**b` is one star. In a name every star is deep.
    match (of_paths, is_whole, after.first()) {
        (true, true, Some(b'/')) => (Token::Directories, length + 1),
        (true, false, _) => (Token::Star, length),
        (false, ..) | (true, true, _) => (Token::Deep, length),
    }
}

/// Where a match begins anew: the token after a star, and the byte that the star has come to.
type Retry = Option<(usize, usize)>;

impl Wild {
    /// Reads a pattern; of paths, in which no `*` but a whole `**` crosses a slash, or else of names.
    ///
    /// With `fold`, capital letters are equal to small ones as far as git sees to it: an escaped capital and a capital in a class
    /// match nothing.
    pub(super) fn new(pattern: &[u8], of_paths: bool, fold: bool) -> Self {
        let mut tokens = Vec::with_capacity(pattern.len());
        let mut at = 0;
        while let Some(&byte) = pattern.get(at) {
            let token = match byte {
                b'?' => Token::One,
                b'*' => {
                    let (token, length) = stars(pattern, at, of_paths);
                    at += length - 1;
                    token
                }
                b'[' => match Class::read(&pattern[at + 1..], fold) {
                    Some((class, length)) => {
                        at += length;
                        Token::Class(Box::new(class))
                    }
                    None => Token::Never,
                },
                b'\\' => {
                    at += 1;
                    pattern.get(at).map_or(Token::Never, |byte| Token::Byte(*byte))
                }
                byte if fold => Token::Byte(byte.to_ascii_lowercase()),
                byte => Token::Byte(byte),
            };
            tokens.push(token);
            at += 1;
        }
        Self { tokens, fold }
    }

    /// Whether it matches all of `text`.
    ///
    /// The last star of each kind is the only one that is tried again: what an earlier one could take, the last can take as
    /// well. So the time is bounded whatever the pattern.
    pub(super) fn matches(&self, text: &[u8]) -> bool {
        let (mut token, mut at) = (0, 0);
        let (mut star, mut deep, mut directories): (Retry, Retry, Retry) = (None, None, None);
        loop {
            let is_step = match self.tokens.get(token) {
                None if at == text.len() => return true,
                None | Some(Token::Never) => false,
                Some(Token::Star) => {
                    star = Some((token + 1, at));
                    true
                }
                // Once a later star is reached, earlier ones are not tried again: what they could take, this one can.
                Some(Token::Deep) => {
                    (star, deep, directories) = (None, Some((token + 1, at)), None);
                    true
                }
                Some(Token::Directories) => {
                    (star, deep, directories) = (None, None, Some((token + 1, at)));
                    true
                }
                Some(one) => {
                    let is_one = text.get(at).is_some_and(|byte| self.is_one(one, *byte));
                    at += usize::from(is_one);
                    is_one
                }
            };
            if is_step {
                token += 1;
            } else if let Some((after, from)) = star.filter(|(_, from)| text.get(*from).is_some_and(|b| *b != b'/')) {
                // The newest star is tried first: it takes one byte more, as long as that byte is not a slash.
                star = Some((after, from + 1));
                (token, at) = (after, from + 1);
            } else if let Some((after, from)) = deep.filter(|(_, from)| *from < text.len()) {
                // The stars after this one are met again, and begin anew.
                (star, deep) = (None, Some((after, from + 1)));
                (token, at) = (after, from + 1);
            } else if let Some((after, from)) = directories
                && let Some(slash) = text[from..].iter().position(|byte| *byte == b'/')
            {
                let from = from + slash + 1;
                (star, directories) = (None, Some((after, from)));
                (token, at) = (after, from);
            } else {
                return false;
            }
        }
    }

    /// Whether it can match nothing.
    pub(super) fn is_malformed(&self) -> bool {
        self.tokens.iter().any(|token| matches!(token, Token::Never))
    }

    fn is_one(&self, token: &Token, byte: u8) -> bool {
        let byte = if self.fold { byte.to_ascii_lowercase() } else { byte };
        match token {
            Token::Byte(wanted) => *wanted == byte,
            Token::One => byte != b'/',
            Token::Class(class) => byte != b'/' && class.0[usize::from(byte)],
            Token::Star | Token::Deep | Token::Directories | Token::Never => false,
        }
    }
}

impl Class {
    /// Reads a class after its `[`; returns it with its length, its `]` included. `None` if it is malformed.
    fn read(text: &[u8], fold: bool) -> Option<(Self, usize)> {
        let is_negated = matches!(text.first()?, b'!' | b'^');
        let mut class = Self([false; 256]);
        let mut at = usize::from(is_negated);
        let first = at;
        // What a range may begin with.
        let mut previous = None;
        loop {
            let byte = *text.get(at)?;
            let after = text.get(at + 1).copied();
            match byte {
                b']' if at > first => break,
                b'-' if previous.is_some() && after? != b']' => {
                    at += 1;
                    let end = Self::literal(text, &mut at)?;
                    class.range(previous.take()?, end, fold);
                }
                b'[' if after == Some(b':') => {
                    let inside = &text[at + 2..];
                    let end = inside.iter().position(|byte| *byte == b']')?;
                    if let Some(name) = inside[..end].strip_suffix(b":") {
                        class.named(name, fold)?;
                        previous = None;
                        at += 2 + end;
                    } else {
                        // Where no `:]` ends it, git takes the `[` for itself.
                        class.0[usize::from(byte)] = true;
                        previous = Some(byte);
                    }
                }
                _ => {
                    let literal = Self::literal(text, &mut at)?;
                    class.0[usize::from(literal)] = true;
                    previous = Some(literal);
                }
            }
            at += 1;
        }
        if is_negated {
            class.0.iter_mut().for_each(|is_in| *is_in = !*is_in);
        }
        Some((class, at + 1))
    }

    /// The byte at a place, or the one that a backslash there escapes; the place is then that one's.
    fn literal(text: &[u8], at: &mut usize) -> Option<u8> {
        if *text.get(*at)? == b'\\' {
            *at += 1;
        }
        text.get(*at).copied()
    }

    fn range(&mut self, from: u8, to: u8, fold: bool) {
        for byte in 0..=u8::MAX {
            let capital = if fold { byte.to_ascii_uppercase() } else { byte };
            self.0[usize::from(byte)] |= (from..=to).contains(&byte) || (from..=to).contains(&capital);
        }
    }

    /// Adds a class by its name. Letters are those of ASCII, and white space is what git takes for it.
    fn named(&mut self, name: &[u8], fold: bool) -> Option<()> {
        let is_in: fn(u8) -> bool = match name {
            b"alnum" => |byte| byte.is_ascii_alphanumeric(),
            b"alpha" => |byte| byte.is_ascii_alphabetic(),
            b"blank" => |byte| matches!(byte, b' ' | b'\t'),
            b"cntrl" => |byte| byte.is_ascii_control(),
            b"digit" => |byte| byte.is_ascii_digit(),
            b"graph" => |byte| byte.is_ascii_graphic(),
            b"lower" => |byte| byte.is_ascii_lowercase(),
            b"print" => |byte| byte.is_ascii_graphic() || byte == b' ',
            b"punct" => |byte| byte.is_ascii_punctuation(),
            b"space" => |byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'),
            b"upper" if fold => |byte| byte.is_ascii_alphabetic(),
            b"upper" => |byte| byte.is_ascii_uppercase(),
            b"xdigit" => |byte| byte.is_ascii_hexdigit(),
            _ => return None,
        };
        for byte in 0..=u8::MAX {
            self.0[usize::from(byte)] |= is_in(byte);
        }
        Some(())
    }
}
