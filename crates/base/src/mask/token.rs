//! Tokens that begin with a word of their own. Each says where it is documented by who issues it.

/// Bytes that tokens are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// `A-Z 0-9`
    Upper,
    /// `A-Z a-z 0-9`
    Alnum,
    /// and `_`
    Word,
    /// and `-`: base64 for URLs
    Dashed,
    /// and `.`
    Dotted,
    /// `A-Z a-z 0-9 + / =`
    Base64,
    /// `A-Z a-z 0-9 - . _ ~ + / =`: credentials of HTTP (RFC 9110, token68)
    Token68,
    /// What a shell takes for one word of an assignment.
    Value,
    /// What stands in one line and in no quotes.
    Line,
}

impl Class {
    pub(super) const fn has(self, b: u8) -> bool {
        match self {
            Self::Upper => b.is_ascii_uppercase() || b.is_ascii_digit(),
            Self::Alnum => b.is_ascii_alphanumeric(),
            Self::Word => b.is_ascii_alphanumeric() || b == b'_',
            Self::Dashed => b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'),
            Self::Dotted => b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'),
            Self::Base64 => b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='),
            Self::Token68 => {
                b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'~' | b'+' | b'/' | b'=')
            }
            Self::Line => (b.is_ascii_graphic() || b == b' ') && !matches!(b, b'"' | b'\'' | b'`' | b'\\'),
            Self::Value => {
                b.is_ascii_graphic()
                    && !matches!(
                        b,
                        b'"' | b'\'' | b'`' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')' | b'\\' | b','
                    )
            }
        }
    }

    /// How many bytes at the beginning belong to it.
    pub(super) fn run(self, bytes: &[u8]) -> usize {
        bytes.iter().position(|b| !self.has(*b)).unwrap_or(bytes.len())
    }
}

/// A token that begins with a word of its own.
pub(super) struct Shape {
    pub(super) prefix: &'static [u8],
    /// What follows: at least so many of these.
    pub(super) least: usize,
    pub(super) of: Class,
    /// What is hidden.
    pub(super) hidden: Class,
    /// Not in the middle of a word, and no byte longer.
    pub(super) is_strict: bool,
}

const fn shape(prefix: &'static str, least: usize, of: Class, hidden: Class) -> Shape {
    Shape { prefix: prefix.as_bytes(), least, of, hidden, is_strict: false }
}

const fn strict(prefix: &'static str, least: usize, of: Class) -> Shape {
    Shape { prefix: prefix.as_bytes(), least, of, hidden: of, is_strict: true }
}

pub(super) const SHAPES: &[Shape] = &[
    // https://github.blog/changelog/2021-03-31-authentication-token-format-updates-are-generally-available/
    // (36 characters today, up to 255 announced); those of applications may carry a JSON Web Token.
    shape("ghp_", 30, Class::Word, Class::Word),
    shape("gho_", 30, Class::Word, Class::Word),
    shape("ghu_", 30, Class::Word, Class::Word),
    shape("ghr_", 30, Class::Word, Class::Word),
    shape("ghs_", 30, Class::Word, Class::Dotted),
    shape("github_pat_", 22, Class::Word, Class::Word),
    // https://docs.gitlab.com/security/tokens/#token-prefixes (20 characters, longer with routing)
    shape("glpat-", 20, Class::Dashed, Class::Dotted),
    shape("gloas-", 20, Class::Dashed, Class::Dotted),
    shape("gldt-", 20, Class::Dashed, Class::Dotted),
    shape("glrt-", 20, Class::Dashed, Class::Dotted),
    shape("glrtr-", 20, Class::Dashed, Class::Dotted),
    shape("glcbt-", 20, Class::Dashed, Class::Dotted),
    shape("glptt-", 20, Class::Dashed, Class::Dotted),
    shape("glft-", 20, Class::Dashed, Class::Dotted),
    shape("glimt-", 20, Class::Dashed, Class::Dotted),
    shape("glagent-", 20, Class::Dashed, Class::Dotted),
    shape("glsoat-", 20, Class::Dashed, Class::Dotted),
    // https://api.slack.com/concepts/token-types
    shape("xoxa-", 10, Class::Dashed, Class::Dashed),
    shape("xoxb-", 10, Class::Dashed, Class::Dashed),
    shape("xoxp-", 10, Class::Dashed, Class::Dashed),
    shape("xoxr-", 10, Class::Dashed, Class::Dashed),
    shape("xoxs-", 10, Class::Dashed, Class::Dashed),
    shape("xoxe-", 10, Class::Dashed, Class::Dashed),
    shape("xapp-", 10, Class::Dashed, Class::Dashed),
    // https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html#identifiers-unique-ids (16 follow)
    strict("AKIA", 16, Class::Upper),
    strict("ASIA", 16, Class::Upper),
    // https://cloud.google.com/docs/authentication/api-keys (39 characters)
    strict("AIza", 35, Class::Dashed),
    // https://docs.stripe.com/keys
    shape("sk_live_", 10, Class::Alnum, Class::Word),
    shape("rk_live_", 10, Class::Alnum, Class::Word),
    shape("sk_test_", 10, Class::Alnum, Class::Word),
    shape("rk_test_", 10, Class::Alnum, Class::Word),
    // https://github.blog/2021-09-23-announcing-npms-new-access-token-format/ (36 characters)
    shape("npm_", 36, Class::Alnum, Class::Alnum),
    // https://pypi.org/help/#apitoken: `pypi-` and a macaroon, whose first bytes are these in base64
    shape("pypi-AgE", 16, Class::Dashed, Class::Dashed),
    // https://platform.claude.com/docs/en/api/overview, and https://platform.openai.com/docs/api-reference/authentication
    shape("sk-ant-", 16, Class::Dashed, Class::Dashed),
    shape("sk-proj-", 16, Class::Dashed, Class::Dashed),
    shape("sk-svcacct-", 16, Class::Dashed, Class::Dashed),
    shape("sk-admin-", 16, Class::Dashed, Class::Dashed),
    Shape { prefix: b"sk-", least: 32, of: Class::Alnum, hidden: Class::Dashed, is_strict: true },
];
