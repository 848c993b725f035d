//! Where a password comes from: `PGPASSWORD`, the file that `PGPASSFILE` names, or `~/.pgpass`
//! (<https://www.postgresql.org/docs/15/libpq-pgpass.html>). Never from a URL.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::server_url::Host;

/// The password of `user` for a database at `host`, if there is one.
pub(super) fn find(host: &Host, database: &str, user: &str) -> Option<String> {
    if let Some(password) = std::env::var_os("PGPASSWORD") {
        return password.into_string().ok();
    }
    let file = file()?;
    let meta = std::fs::metadata(&file).ok()?;
    // As libpq: a file that others can read is ignored.
    if !meta.is_file() || meta.permissions().mode() & 0o077 != 0 {
        return None;
    }
    let text = std::fs::read_to_string(&file).ok()?;
    let (name, port) = match host {
        Host::Tcp(name, port) => (name.clone(), *port),
        // A socket in the usual place is `localhost` there.
        Host::Socket(directory, port) => {
            let is_usual = matches!(directory.to_str(), Some("/tmp" | "/run/postgresql" | "/var/run/postgresql"));
            (if is_usual { "localhost".to_owned() } else { directory.to_string_lossy().into_owned() }, *port)
        }
    };
    text.lines().find_map(|line| matching(line, [&name, &port.to_string(), database, user]))
}

fn file() -> Option<PathBuf> {
    let named = std::env::var_os("PGPASSFILE").map(PathBuf::from);
    named.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".pgpass")))
}

/// What to do where there is none.
pub(super) fn hint() -> String {
    let Some(file) = file() else {
        return "give it in PGPASSWORD, or in the file that PGPASSFILE names (chmod 600)".to_owned();
    };
    let path = ic_base::shell_word(&file.display().to_string());
    match std::fs::metadata(&file) {
        Ok(meta) if meta.permissions().mode() & 0o077 != 0 => {
            format!("{path} is not believed while others may read it: chmod 600 {path}")
        }
        Ok(_) => format!("no line of {path} fits; give it there (HOST:PORT:DATABASE:USER:PASSWORD), or in PGPASSWORD"),
        Err(_) => {
            format!("give it in {path} (chmod 600; HOST:PORT:DATABASE:USER:PASSWORD), or in PGPASSWORD")
        }
    }
}

/// The password of a line whose first four fields fit.
fn matching(line: &str, wanted: [&str; 4]) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let mut fields = fields(line);
    for wanted in wanted {
        let field = fields.next()?;
        if field != "*" && field != wanted {
            return None;
        }
    }
    fields.next()
}

/// Fields between colons; after a backslash, the next character is literal.
fn fields(line: &str) -> impl Iterator<Item = String> + '_ {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let text = rest?;
        let mut field = String::new();
        let mut chars = text.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                ':' => {
                    rest = Some(&text[at + 1..]);
                    return Some(field);
                }
                '\\' => field.extend(chars.next().map(|(_, c)| c)),
                c => field.push(c),
            }
        }
        rest = None;
        Some(field)
    })
}

#[cfg(test)]
mod tests {
    use super::matching;

    #[test]
    fn a_line_fits_or_it_does_not() {
        let wanted = ["db", "5432", "app", "ann"];
        for (line, password) in [
            ("db:5432:app:ann:secret", Some("secret")),
            ("*:*:*:*:any", Some("any")),
            ("db:5432:app:ann:a\\:b\\\\c", Some("a:b\\c")),
            ("#db:5432:app:ann:secret", None),
            ("db:5433:app:ann:secret", None),
            ("db:5432:app:bob:secret", None),
            ("db:5432:app:ann", None),
            ("", None),
        ] {
            assert_eq!(matching(line, wanted).as_deref(), password, "{line}");
        }
    }
}
