//! How a ledger on a server is named: `postgres://[USER@]HOST[:PORT][,HOST2...]/DATABASE?ledger=NAME`.
//!
//! A password is never part of the name, so the name can be shown, recorded and handed on.

use std::fmt;
use std::path::{Path, PathBuf};

use ic_base::{Code, Diagnosis, Result};

/// The name of a ledger where the URL gives none.
const DEFAULT_LEDGER: &str = "ic";
const DEFAULT_PORT: u16 = 5432;

ic_base::words! {
    /// How far the connection is protected.
    pub enum Tls {
        /// Not at all: for a socket, or a network of one's own.
        Disable = "disable",
        /// Encrypted, and the server's certificate is of its name and of an authority that is trusted.
        VerifyFull = "verify-full",
    }
}

ic_base::words! {
    /// Whether a password is bound to the encrypted connection it is sent on.
    pub enum ChannelBinding {
        /// The password is never bound to the connection.
        Disable = "disable",
        /// It is bound if the server can do it.
        Prefer = "prefer",
        /// It is bound, or there is no connection.
        Require = "require",
    }
}

/// A place where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// A name or address, and a port.
    Tcp(String, u16),
    /// The directory of a socket, and the port that its name ends with.
    Socket(PathBuf, u16),
}

/// Which ledger on which server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerUrl {
    /// Who connects; `None`: the user of this process.
    pub user: Option<String>,
    /// Where it may be; of several, the one that can be written to.
    pub hosts: Vec<Host>,
    /// The database on the server that holds the ledger's schema.
    pub database: String,
    /// The schema in it that is the ledger.
    pub ledger: String,
    /// What the URL asks of the connection; `None`: verified over a network, plain on this machine.
    pub tls: Option<Tls>,
    /// The file of the authorities that are trusted; `None`: those of the system.
    pub root_certificates: Option<PathBuf>,
    /// Seconds to wait for a connection.
    pub connect_timeout: Option<u32>,
    /// What the URL asks of the password's exchange; `None`: preferred.
    pub channel_binding: Option<ChannelBinding>,
}

impl ServerUrl {
    /// Why it cannot be opened by a program that is built without servers.
    #[cfg(any(test, not(feature = "server")))]
    pub(crate) fn without_servers(&self) -> Diagnosis {
        Diagnosis::new(Code::Usage, format!("This build of ic has no ledgers on servers: {self}."))
            .hint("build it with: cargo install --path crates/ic --locked --features server")
    }

    /// Whether a place is meant to be the URL of a server, rather than the path of a file.
    pub fn is_meant(text: &str) -> bool {
        let text = text.trim_start();
        // A URL that lacks a slash, or is another program's, may hold a password too: it must not become the name of a file.
        let is_almost = ["postgres:", "postgresql:", "jdbc:"].iter().any(|start| text.starts_with(start))
            || text.contains("password=");
        is_almost
            || text.split_once("://").is_some_and(|(scheme, _)| {
                !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
            })
    }

    /// Reads a URL. Errors: `invalid_value`; what it says never holds a part of the URL that may be a password.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        let (scheme, rest) =
            text.split_once("://").ok_or_else(|| wrong("The ledger is named by what is almost a URL.".to_owned()))?;
        if !matches!(scheme, "postgres" | "postgresql") {
            return Err(wrong("A ledger is a file or on PostgreSQL: the URL has another scheme.".to_owned()));
        }
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        if rest.contains('#') || query.contains('#') {
            return Err(wrong("The URL of a ledger has no part after \"#\".".to_owned()));
        }
        let (authority, database) =
            rest.split_once('/').ok_or_else(|| wrong("The URL of a ledger names a database.".to_owned()))?;
        // From the right: a password with an `@` in it is still found before the last one, and refused.
        let (user, hosts) = match authority.rsplit_once('@') {
            Some((user, _)) if user.contains(':') => return Err(password()),
            Some((user, hosts)) => (Some(decode(user)?), hosts),
            None => (None, authority),
        };
        let database = decode(database)?;
        // `user:password@database` in a wrong place.
        if user.as_ref().is_some_and(|user| user.contains(':')) || database.contains([':', '@']) {
            return Err(password());
        }
        let mut url = Self {
            user: user.filter(|user| !user.is_empty()),
            hosts: Vec::new(),
            database,
            ledger: DEFAULT_LEDGER.to_owned(),
            tls: None,
            root_certificates: None,
            connect_timeout: None,
            channel_binding: None,
        };
        // A host in the place of hosts is escaped on its own; one in `host=` as a part of the query, which is decoded already.
        let mut named = hosts.split(',').map(decode).collect::<Result<Vec<_>>>()?;
        let mut port = DEFAULT_PORT;
        let mut seen = std::collections::BTreeSet::new();
        // Names from before the `?` count too: otherwise a parameter could silently replace what a reader sees first.
        seen.extend(url.user.is_some().then(|| "user".to_owned()));
        seen.extend((!hosts.is_empty()).then(|| "host".to_owned()));
        for (key, value) in form_urlencoded::parse(query.as_bytes()) {
            if !seen.insert(key.clone().into_owned()) {
                return Err(wrong(format!("The URL of a ledger names its {key} twice.")));
            }
            url.set(&key, &value, &mut named, &mut port)?;
        }
        // Again, because the parameter `user` may have set it.
        if url.user.as_ref().is_some_and(|user| user.contains(':')) {
            return Err(password());
        }
        url.require_no_zero(&named)?;
        for host in named {
            url.hosts.push(parse_host(host, port)?);
        }
        if url.database.is_empty() {
            return Err(wrong("The URL of a ledger names a database.".to_owned()));
        }
        require_name(&url.ledger)?;
        url.require_binding()?;
        Ok(url)
    }

    fn require_no_zero(&self, hosts: &[String]) -> Result<()> {
        let user = self.user.as_deref().unwrap_or_default();
        if [self.database.as_str(), user]
            .into_iter()
            .chain(hosts.iter().map(String::as_str))
            .any(|text| text.contains('\0'))
        {
            return Err(wrong("The URL of a ledger has a zero character.".to_owned()));
        }
        Ok(())
    }

    /// Errors: `invalid_value` for a password that is to be bound to a connection without encryption.
    fn require_binding(&self) -> Result<()> {
        if self.channel_binding == Some(ChannelBinding::Require) && !self.is_verified() {
            return Err(wrong("channel_binding=require needs an encrypted connection.".to_owned())
                .hint("add: sslmode=verify-full"));
        }
        Ok(())
    }

    fn set(&mut self, key: &str, value: &str, hosts: &mut Vec<String>, port: &mut u16) -> Result<()> {
        let bad = |what: &str| wrong(format!("{key}={value:?} in the URL of a ledger is not {what}."));
        match key {
            "ledger" => value.clone_into(&mut self.ledger),
            "host" => *hosts = value.split(',').map(str::to_owned).collect(),
            "port" => *port = value.parse().map_err(|_| bad("a port"))?,
            "user" => self.user = Some(value.to_owned()),
            "sslmode" => {
                let words = || bad("disable, require, verify-ca or verify-full");
                // Providers put `require` into their URLs, which asks for less: here every encrypted connection is also verified.
                let asked = if matches!(value, "require" | "verify-ca") { "verify-full" } else { value };
                self.tls = Some(Tls::parse(asked).ok_or_else(words)?);
            }
            "sslrootcert" => self.root_certificates = Some(PathBuf::from(value)),
            "connect_timeout" => {
                self.connect_timeout = Some(value.parse().map_err(|_| bad("a number of seconds"))?);
            }
            "channel_binding" => {
                let words = || bad("disable, prefer or require");
                self.channel_binding = Some(ChannelBinding::parse(value).ok_or_else(words)?);
            }
            "password" => return Err(password()),
            _ => {
                return Err(wrong(format!("The URL of a ledger has no parameter {key:?}."))
                    .hint("known: ledger, host, port, user, sslmode, sslrootcert, connect_timeout, channel_binding"));
            }
        }
        Ok(())
    }

    /// Whether the connection is encrypted and verified.
    pub fn is_verified(&self) -> bool {
        let is_here = |host: &Host| match host {
            Host::Socket(..) => true,
            Host::Tcp(name, _) => matches!(name.as_str(), "localhost" | "127.0.0.1" | "::1" | "[::1]"),
        };
        match self.tls {
            Some(tls) => tls == Tls::VerifyFull,
            None => !self.hosts.iter().all(is_here),
        }
    }

    /// Whether both lead to a ledger of one name in a database of one name: it may be reached as another role, and by another way.
    pub(crate) fn is_named_as(&self, other: &Self) -> bool {
        (&self.database, &self.ledger) == (&other.database, &other.ledger)
    }
}

/// Without a password, which it never has.
impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut more = form_urlencoded::Serializer::new(String::new());
        let mut authority = Vec::new();
        for host in &self.hosts {
            match host {
                Host::Tcp(name, port) => {
                    let name = if name.contains(':') { format!("[{name}]") } else { encode(name) };
                    let is_usual = *port == DEFAULT_PORT;
                    authority.push(if is_usual { name } else { format!("{name}:{port}") });
                }
                Host::Socket(directory, port) => {
                    more.append_pair("host", &directory.to_string_lossy());
                    if *port != DEFAULT_PORT {
                        more.append_pair("port", &port.to_string());
                    }
                }
            }
        }
        more.append_pair("ledger", &self.ledger);
        if let Some(tls) = self.tls {
            more.append_pair("sslmode", tls.as_str());
        }
        if let Some(file) = &self.root_certificates {
            more.append_pair("sslrootcert", &file.to_string_lossy());
        }
        if let Some(seconds) = self.connect_timeout {
            more.append_pair("connect_timeout", &seconds.to_string());
        }
        if let Some(binding) = self.channel_binding {
            more.append_pair("channel_binding", binding.as_str());
        }
        let user = self.user.as_deref().map(|user| encode(user) + "@").unwrap_or_default();
        let database = encode(&self.database);
        write!(f, "postgres://{user}{}/{database}?{}", authority.join(","), more.finish())
    }
}

/// The characters that are not escaped in a URL.
const PLAIN: percent_encoding::AsciiSet =
    percent_encoding::NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

fn encode(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, &PLAIN).to_string()
}

/// A host of the URL: a name, an address, or the directory of a socket.
fn parse_host(text: String, port: u16) -> Result<Host> {
    if text.starts_with('/') {
        return Ok(Host::Socket(PathBuf::from(text), port));
    }
    let (name, named) = match text.rsplit_once(':') {
        // The colons of an address of IPv6 stand in brackets.
        Some((name, digits)) if !digits.ends_with(']') => {
            let port =
                digits.parse().map_err(|_| wrong("The URL of a ledger has a port that is no number.".to_owned()))?;
            (name, port)
        }
        _ => (text.as_str(), port),
    };
    if named == 0
        || name.contains('\0')
        || name.contains(':') != name.starts_with('[')
        || name.starts_with('[') != name.ends_with(']')
    {
        return Err(wrong("The URL of a ledger has a host or a port that is none.".to_owned())
            .hint("an address of IPv6 stands in brackets: postgres://[::1]:5432/DATABASE"));
    }
    if name.is_empty() {
        return Err(wrong("The URL of a ledger names no host.".to_owned())
            .hint("postgres://HOST/DATABASE, or postgres:///DATABASE?host=/run/postgresql"));
    }
    Ok(Host::Tcp(name.trim_matches(['[', ']']).to_owned(), named))
}

/// A name that is a schema's: what a person can type, and no part of SQL.
fn require_name(name: &str) -> Result<()> {
    let first = name.bytes().next().is_some_and(|b| b.is_ascii_lowercase() || b == b'_');
    let rest = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    // PostgreSQL cuts off what is longer than 63 bytes, and keeps names with `pg_` for itself.
    if first && rest && name.len() <= 63 && !name.starts_with("pg_") {
        return Ok(());
    }
    Err(wrong(format!("{name:?} is no name of a ledger on a server."))
        .hint("a lowercase letter or _, then lowercase letters, digits and _; at most 63"))
}

/// What is nominally the ledger's file: what lies beside a ledger lies beside it, in the local store.
pub(crate) fn nominal_file(store: &Path) -> PathBuf {
    store.join("server.db")
}

fn decode(text: &str) -> Result<String> {
    percent_encoding::percent_decode_str(text)
        .decode_utf8()
        .map(std::borrow::Cow::into_owned)
        .map_err(|_| wrong("The URL of a ledger is not UTF-8.".to_owned()))
}

fn wrong(what: String) -> Diagnosis {
    Diagnosis::new(Code::InvalidValue, what).hint("postgres://[USER@]HOST[:PORT]/DATABASE?ledger=NAME")
}

fn password() -> Diagnosis {
    Diagnosis::new(Code::InvalidValue, "The URL of a ledger holds no password: it is shown and recorded.")
        .hint("put it into ~/.pgpass, or into the file that PGPASSFILE names")
}

#[cfg(test)]
mod tests;
