//! What is found at a place of the input, and how much of it is hidden.

use super::token::Class;

/// No private key is longer than this; a key whose end is missing hides no more.
pub(super) const LONGEST_KEY: usize = 16 * 1024;

/// How far the part reaches that is hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hidden {
    /// Over all bytes of a class.
    Of(Class),
    /// Over this number of bytes.
    Bytes(usize),
    /// To the end of a private key, or over this number of bytes.
    Key(usize),
}

/// What the bytes at a place are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MaskVerdict {
    /// No token begins here.
    No,
    /// That cannot be said yet.
    More,
    /// The first part of a JSON Web Token may begin here.
    Header,
    /// A token, with the number of its bytes that are shown.
    Token { shown: usize, hidden: Hidden },
}
