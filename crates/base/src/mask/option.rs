//! Passwords that some programs take with an option of one letter. It means something else to others (`mkdir -p`, `ps -a`), so it counts in
//! the command of the program alone.

use super::Hidden;
use super::shape::Verdict;
use super::token::Class;

/// A program that takes its password so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    /// <https://dev.mysql.com/doc/refman/en/connecting.html>: `-pPASSWORD`, and never with a space.
    Mysql,
    /// <https://manpages.debian.org/sshpass>: `-p PASSWORD`
    Sshpass,
    /// <https://redis.io/docs/latest/develop/tools/cli/>: `-a PASSWORD`
    Redis,
}

/// Whether the name of such a program stands at a place.
pub(super) enum Named {
    No,
    More,
    Tool(Tool),
}

/// The two bytes before, where it is looked for, and what may follow up to the next space. Looked for in the middle of the name, where two
/// letters meet that seldom do.
const TOOLS: [([u8; 2], &[u8], Tool); 4] = [
    (*b"\0m", b"ysql", Tool::Mysql),
    (*b"ia", b"db", Tool::Mysql),
    (*b"ss", b"hpass", Tool::Sshpass),
    (*b"is", b"-cli", Tool::Redis),
];
/// `mysqldump`, `mariadb-admin`.
const LONGEST_REST: usize = 16;

/// Ports of a container have nothing but digits and a colon (`-p3306:3306`).
const LONGEST_PORTS: usize = 12;

/// Whether the command of a program ends here.
pub(super) fn ends_command(b: u8) -> bool {
    matches!(b, b'\n' | b';' | b'|' | b'&')
}

/// The program whose name stands here.
pub(super) fn named(rest: &[u8], before: [u8; 2], at_end: bool) -> Named {
    for (left, name, tool) in TOOLS {
        if before[1] != left[1] || (left[0] != 0 && before[0] != left[0]) {
            continue;
        }
        if rest.len() < name.len() && name.starts_with(rest) && !at_end {
            return Named::More;
        }
        let Some(body) = rest.strip_prefix(name) else { continue };
        let body = &body[..body.len().min(LONGEST_REST)];
        return match body.iter().position(|b| !b.is_ascii_lowercase() && *b != b'-') {
            Some(end) if body[end] == b' ' => Named::Tool(tool),
            None if body.len() < LONGEST_REST && !at_end => Named::More,
            _ => Named::No,
        };
    }
    Named::No
}

/// Whether the option stands here, whatever its value is, after which another program follows with options of its own.
pub(super) fn is_last(tool: Tool, rest: &[u8], before: [u8; 2]) -> bool {
    tool == Tool::Sshpass && before[1] == b' ' && rest.starts_with(b"-p")
}

/// The value of the option that holds the password.
pub(super) fn value(tool: Tool, rest: &[u8], before: [u8; 2], at_end: bool) -> Verdict {
    let option: &[u8] = if tool == Tool::Redis { b"-a" } else { b"-p" };
    if before[1] != b' ' || !option.starts_with(&rest[..rest.len().min(2)]) {
        return Verdict::No;
    }
    let open = if at_end { Verdict::No } else { Verdict::More };
    let spaces = usize::from(tool != Tool::Mysql);
    let mut at = option.len();
    let is_quote = |b: &u8| matches!(b, b'"' | b'\'' | b'\\');
    at += rest.iter().skip(at).take(spaces).take_while(|b| **b == b' ').count();
    at += rest.iter().skip(at).take(2).take_while(|b| is_quote(b)).count();
    let Some(body) = rest.get(at..).filter(|body| !body.is_empty()) else { return open };
    if matches!(body[0], b'$' | b'{' | b'*' | b'-') || !Class::Value.has(body[0]) {
        return Verdict::No;
    }
    let near = &body[..body.len().min(LONGEST_PORTS)];
    let digits = near.iter().position(|b| !b.is_ascii_digit());
    match digits {
        Some(end) if near[end] == b':' && end > 0 => Verdict::No,
        None if near.len() < LONGEST_PORTS && !at_end => Verdict::More,
        _ => Verdict::Token { shown: at, hidden: Hidden::Of(Class::Value) },
    }
}
