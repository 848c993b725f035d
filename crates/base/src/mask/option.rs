//! Passwords that some programs take with an option of one letter. It means something else to others (`mkdir -p`, `ps -a`), so it counts in
//! the command of the program alone.

use super::preceding_bytes::PrecedingBytes;
use super::token::Class;
use super::verdict::{Hidden, MaskVerdict};

/// A program that takes its password so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OptionProgram {
    /// <https://dev.mysql.com/doc/refman/en/connecting.html>: `-pPASSWORD`, and never with a space.
    Mysql,
    /// `sshpass -p PASSWORD`: <https://manpages.debian.org/sshpass>
    Sshpass,
    /// `redis-cli -a PASSWORD`: <https://redis.io/docs/latest/develop/tools/cli/>
    Redis,
    /// `docker login`, `az login`, `helm registry login`, `oc login`; `mongosh`: `-p PASSWORD`
    Login,
    /// `ldapsearch -w PASSWORD`: <https://manpages.debian.org/ldapsearch>
    Ldap,
    /// <https://learn.microsoft.com/sql/tools/sqlcmd/sqlcmd-utility>, <https://manpages.debian.org/zip>: `-P PASSWORD`
    Capital,
    /// `plink -pw PASSWORD`: <https://the.earth.li/~sgtatham/putty/latest/htmldoc/>
    Putty,
}

/// Whether the name of such a program stands at a place.
pub(super) enum OptionName {
    No,
    More,
    Tool(OptionProgram),
}

/// The two bytes before, where it is looked for, and what may follow up to the next space. Looked for in the middle of the name, where
/// letters meet that seldom do.
const TOOLS: [([u8; 2], &[u8], OptionProgram); 17] = [
    // A zero stands for any byte.
    (*b"\0m", b"ysql", OptionProgram::Mysql),
    (*b"ia", b"db", OptionProgram::Mysql),
    (*b"ss", b"hpass", OptionProgram::Sshpass),
    (*b"is", b"-cli", OptionProgram::Redis),
    (*b"\0\0", b"login", OptionProgram::Login),
    (*b"mo", b"ngos", OptionProgram::Login),
    (*b"mo", b"ngod", OptionProgram::Login),
    (*b"mo", b"ngor", OptionProgram::Login),
    (*b"ld", b"apse", OptionProgram::Ldap),
    (*b"ld", b"apad", OptionProgram::Ldap),
    (*b"ld", b"apmo", OptionProgram::Ldap),
    (*b"sq", b"lcmd", OptionProgram::Capital),
    (*b"\0z", b"ip ", OptionProgram::Capital),
    (*b"nz", b"ip ", OptionProgram::Capital),
    (*b"pl", b"ink", OptionProgram::Putty),
    (*b"ps", b"cp ", OptionProgram::Putty),
    (*b"ps", b"ftp", OptionProgram::Putty),
];
/// The most letters after the part of a name that is looked for (`mysqldump`, `mariadb-admin`).
const LONGEST_REST: usize = 16;

/// Ports of a container have nothing but digits and a colon (`-p3306:3306`).
const LONGEST_PORTS: usize = 12;

impl OptionProgram {
    /// The option that gives its password, and how many spaces may follow.
    const fn option(self) -> (&'static [u8], usize) {
        match self {
            Self::Mysql => (b"-p", 0),
            Self::Sshpass | Self::Login => (b"-p", 1),
            Self::Redis => (b"-a", 1),
            Self::Ldap => (b"-w", 1),
            Self::Capital => (b"-P", 1),
            Self::Putty => (b"-pw", 1),
        }
    }

    /// Whether the password may follow without a space: in others that is an option of another name.
    const fn is_glued(self) -> bool {
        !matches!(self, Self::Login | Self::Putty)
    }
}

/// Whether the command of a program ends here.
pub(super) fn ends_command(b: u8) -> bool {
    matches!(b, b'\n' | b';' | b'|' | b'&')
}

/// The program whose name stands here.
pub(super) fn named(rest: &[u8], before: PrecedingBytes<'_>, at_end: bool) -> OptionName {
    let two = before.two();
    for (left, name, tool) in TOOLS {
        let is_left = |at: usize| left[at] == 0 || two[at] == left[at];
        // `login` must begin a word: `weblogin` does not name the command.
        if !is_left(0)
            || !is_left(1)
            || (tool == OptionProgram::Login && left[1] == 0 && two[1].is_ascii_alphanumeric())
        {
            continue;
        }
        if rest.len() < name.len() && name.starts_with(rest) && !at_end {
            return OptionName::More;
        }
        let Some(body) = rest.strip_prefix(name) else { continue };
        // A name that ends with a space is whole, such as `zip`. Letters may follow the others: `mysqldump`, `mongosh`.
        if name.ends_with(b" ") {
            return OptionName::Tool(tool);
        }
        let body = &body[..body.len().min(LONGEST_REST)];
        return match body.iter().position(|b| !b.is_ascii_lowercase() && *b != b'-') {
            Some(end) if body[end] == b' ' => OptionName::Tool(tool),
            None if body.len() < LONGEST_REST && !at_end => OptionName::More,
            _ => OptionName::No,
        };
    }
    OptionName::No
}

/// Whether the option stands here, whatever its value is, after which another program follows with options of its own.
pub(super) fn is_last(tool: OptionProgram, rest: &[u8], before: PrecedingBytes<'_>) -> bool {
    // In `sshpass -p x ssh -p 22 host`, the second option belongs to `ssh`, and gives a port.
    tool == OptionProgram::Sshpass && before.back(0) == b' ' && rest.starts_with(b"-p")
}

/// The value of the option that holds the password.
pub(super) fn value(tool: OptionProgram, rest: &[u8], before: PrecedingBytes<'_>, at_end: bool) -> MaskVerdict {
    let (option, most_spaces) = tool.option();
    if before.back(0) != b' ' || !option.starts_with(&rest[..rest.len().min(option.len())]) {
        return MaskVerdict::No;
    }
    let open = if at_end { MaskVerdict::No } else { MaskVerdict::More };
    let mut at = option.len();
    let is_quote = |b: &u8| matches!(b, b'"' | b'\'' | b'\\');
    let spaces = rest.iter().skip(at).take(most_spaces).take_while(|b| **b == b' ').count();
    if spaces == 0 && !tool.is_glued() {
        return if rest.len() > at { MaskVerdict::No } else { open };
    }
    at += spaces;
    at += rest.iter().skip(at).take(2).take_while(|b| is_quote(b)).count();
    let Some(body) = rest.get(at..).filter(|body| !body.is_empty()) else { return open };
    // The shell fills in `-p$PW`, and in `-p -h` the option has no value.
    if matches!(body[0], b'$' | b'{' | b'*' | b'-') || !Class::Value.has(body[0]) {
        return MaskVerdict::No;
    }
    // `docker run mysql -p3306:3306` publishes a port.
    let near = &body[..body.len().min(LONGEST_PORTS)];
    let digits = near.iter().position(|b| !b.is_ascii_digit());
    match digits {
        Some(end) if near[end] == b':' && end > 0 => MaskVerdict::No,
        None if near.len() < LONGEST_PORTS && !at_end => MaskVerdict::More,
        _ => MaskVerdict::Token { shown: at, hidden: Hidden::Of(Class::Value) },
    }
}
