//! Our server in settings that are TOML, as those of Codex are: one table at the end. Every other byte stays.

use serde_json::Value;
use toml::de::{DeTable, DeValue};

/// The reason why a file cannot be edited.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unfit {
    /// It is no TOML: the parser's message.
    Invalid(String),
    /// Its servers are written in a form to which no table can be added.
    Closed,
    /// It has a server of our name that ic did not write.
    Taken,
}

type Result<T> = std::result::Result<T, Unfit>;

const HEAD: &str = "[mcp_servers.ic]\n";

/// Checks that the bytes are TOML.
pub(super) fn check(bytes: &[u8]) -> Result<()> {
    text(bytes).map(drop)
}

/// The file with our table, once and in its newest form. `before`: the present content; `None` if the file does not exist.
pub(super) fn with(before: Option<&[u8]>, program: &str) -> Result<Vec<u8>> {
    let table = table(program);
    let is_there = before.is_some();
    let mut text = text(before.unwrap_or_default())?.to_owned();
    if let Some(found) = ours(&text) {
        text.replace_range(found, &table);
    } else if names_us(&text)? {
        return Err(Unfit::Taken);
    } else {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        // An empty file gets a blank line first, so that uninstalling leaves an empty file, and does not remove it.
        if !text.is_empty() || is_there {
            text.push('\n');
        }
        text.push_str(&table);
    }
    // Parsed once more: TOML forbids the table if `mcp_servers` itself was written in another form.
    check(text.as_bytes()).map_err(|_| Unfit::Closed)?;
    Ok(text.into_bytes())
}

/// The file without our table, `None` if nothing else is in it; and whether it still has a server of our name, changed by hand.
pub(super) fn without(bytes: &[u8]) -> Result<(Option<Vec<u8>>, bool)> {
    let text = text(bytes)?;
    let Some(found) = ours(text) else { return Ok((Some(bytes.to_vec()), names_us(text)?)) };
    let mut rest = text.to_owned();
    // The blank line before the table was added with it. As the first line of the file it says that the file existed, and was empty.
    let above = &rest[..found.start];
    let was_empty = above == "\n";
    let begin = if was_empty || above.ends_with("\n\n") { found.start - 1 } else { found.start };
    rest.replace_range(begin..found.end, "");
    Ok(((was_empty || !rest.is_empty()).then(|| rest.into_bytes()), false))
}

/// Whether the file has our table, unchanged.
pub(super) fn is_in(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| ours(text).is_some())
}

// This is added below a blank line:
//
//     [mcp_servers.ic]
//     command = "/usr/local/bin/ic"
//     args = ["mcp"]
fn table(program: &str) -> String {
    // The escapes of a basic string that occur in a path are those of JSON.
    format!("{HEAD}command = {}\nargs = [\"mcp\"]\n", Value::from(program))
}

/// The position of a table that some version of ic wrote.
fn ours(text: &str) -> Option<std::ops::Range<usize>> {
    // The same words may stand in a comment or a text, but not at the beginning of a line.
    let is_begin = |at: &usize| *at == 0 || text[..*at].ends_with('\n');
    let begin = text.match_indices(HEAD).map(|(at, _)| at).find(is_begin)?;
    let rest = &text[begin + HEAD.len()..];
    let program = rest.lines().next()?.strip_prefix("command = ")?;
    let program: String = serde_json::from_str(program).ok()?;
    let table = table(&program);
    // With more keys, also in a table of their own below it, a person has changed it.
    let is_whole = keys(text).ok()?? == ["args", "command"];
    (text[begin..].starts_with(&table) && is_whole).then_some(begin..begin + table.len())
}

/// Whether there is a server of our name, in whatever form.
fn names_us(text: &str) -> Result<bool> {
    Ok(keys(text)?.is_some())
}

/// The keys of the server of our name, sorted; `None` if there is none.
fn keys(text: &str) -> Result<Option<Vec<String>>> {
    let table = parsed(text)?;
    let Some(DeValue::Table(servers)) = table.get("mcp_servers").map(toml::Spanned::get_ref) else {
        return Ok(None);
    };
    let Some(server) = servers.get("ic") else { return Ok(None) };
    let mut keys = match server.get_ref() {
        DeValue::Table(server) => server.keys().map(ToString::to_string).collect(),
        _ => Vec::new(),
    };
    keys.sort_unstable();
    Ok(Some(keys))
}

fn text(bytes: &[u8]) -> Result<&str> {
    let text = std::str::from_utf8(bytes).map_err(|e| Unfit::Invalid(e.to_string()))?;
    parsed(text)?;
    Ok(text)
}

fn parsed(text: &str) -> Result<DeTable<'_>> {
    let parsed = DeTable::parse(text).map(toml::Spanned::into_inner);
    parsed.map_err(|e| Unfit::Invalid(e.message().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn install(before: &str) -> Result<String> {
        with(Some(before.as_bytes()), "/opt/i \"c").map(|bytes| String::from_utf8(bytes).expect("text"))
    }

    fn uninstall(text: &str) -> (String, bool) {
        let (after, is_left) = without(text.as_bytes()).expect("valid");
        (String::from_utf8(after.unwrap_or_default()).expect("text"), is_left)
    }

    #[test]
    fn a_file_that_was_not_there_goes_and_an_empty_one_stays() {
        let made = with(None, "ic").expect("installed");
        assert_eq!(without(&made), Ok((None, false)));
        let filled = with(Some(b""), "ic").expect("installed");
        assert_eq!(without(&filled), Ok((Some(Vec::new()), false)));
        assert_eq!(with(Some(b"mcp_servers = { x = { command = \"y\" } }\n"), "ic"), Err(Unfit::Closed));
    }

    #[test]
    fn our_table_comes_once_and_goes_byte_for_byte() {
        for before in ["", "model = \"x\"  # mine\n", "[a]\nb = 1\n\n\n", "[mcp_servers.other]\ncommand = \"x\"\n"] {
            let once = install(before).expect("installed");
            assert!(
                once.starts_with(before) && once.contains("[mcp_servers.ic]\ncommand = \"/opt/i \\\"c\"\n"),
                "{once}"
            );
            assert_eq!(install(&once).expect("again"), once);
            assert_eq!(uninstall(&once), (before.to_owned(), false), "{once}");
            let followed = format!("{once}\n[later]\nc = 2\n");
            assert_eq!(uninstall(&followed).0, format!("{before}\n[later]\nc = 2\n"));
        }
    }

    #[test]
    fn a_server_of_our_name_that_is_not_ours_is_left() {
        for before in [
            "[mcp_servers.ic]\ncommand = \"other\"\n",
            "[mcp_servers]\nic = { command = \"x\" }\n",
            "mcp_servers.ic.command = \"x\"\n",
            "mcp_servers = { ic = { command = \"x\" } }\n",
        ] {
            assert!(install(before).is_err(), "{before}");
            assert_eq!(uninstall(before), (before.to_owned(), true));
        }
        // A person added to it.
        for more in ["startup_timeout_sec = 5\n", "\n[mcp_servers.ic.tools.undo]\napproval_mode = \"approve\"\n"] {
            let more = install("").expect("installed") + more;
            assert_eq!(uninstall(&more), (more.clone(), true));
        }
        // A comment is of no server.
        let noted = install("").expect("installed") + "# note\n";
        assert_eq!((install(&noted), uninstall(&noted)), (Ok(noted.clone()), ("# note\n".to_owned(), false)));
    }

    #[test]
    fn what_is_not_valid_or_has_no_room_is_refused() {
        for before in ["a = \n", "= 1", "mcp_servers = { other = { command = \"x\" } }\n", "mcp_servers = 1\n"] {
            assert!(install(before).is_err(), "{before}");
        }
        assert!(with(Some(b"\xff"), "ic").is_err());
    }
}
