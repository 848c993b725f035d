//! The way to the server: its hosts in turn, who connects, and how it is protected.

use std::time::{Duration, Instant};

use ic_base::{Code, Diagnosis, Result};
use tokio_postgres::config::{ChannelBinding as Binding, SslMode, TargetSessionAttrs};
use tokio_postgres::{Client, Config, NoTls};

use super::Server;
use super::error::diagnose;
use super::{names, password, tls};
use crate::server_url::{ChannelBinding, Host, ServerUrl};

/// Seconds to wait for one host: for its address, the connection, TLS and the password together.
pub(super) const CONNECT_TIMEOUT: u32 = 10;

const DOING: &str = "connecting";

/// Connects to the first host that can be written to.
///
/// Errors: `unreachable`, `permission_denied`, `no_ledger` for a database that does not exist, `busy` where all connections are taken.
pub(super) fn connect(server: &Server) -> Result<Client> {
    let mut met = None;
    // One after the other, because the password of each is its own.
    for host in &server.url().hosts {
        let until = Instant::now() + server.connect_timeout();
        let addresses = match configs(server, host) {
            Err(error) if error.code() == Code::Unreachable => {
                met = Some(more_telling(met, error));
                continue;
            }
            addresses => addresses?,
        };
        for config in addresses {
            match to_address(server, &config, until)? {
                Ok(client) => return Ok(client),
                Err(error) => met = Some(more_telling(met, error)),
            }
        }
    }
    Err(met.unwrap_or_else(|| server.no_answer(DOING)))
}

/// What is said of two addresses that both failed: what a server answered, before that another cannot be reached.
fn more_telling(before: Option<Diagnosis>, error: Diagnosis) -> Diagnosis {
    match before {
        Some(before) if error.code() == Code::Unreachable && before.code() != Code::Unreachable => before,
        _ => error,
    }
}

/// The connection to one address, or why there is none. Errors: of what is the same for every address.
fn to_address(server: &Server, config: &Config, until: Instant) -> Result<std::result::Result<Client, Diagnosis>> {
    let url = server.url();
    Ok(match connection(server, config, until)? {
        Ok(client) => Ok(client),
        Err(Some(error)) if lacks_password(&error) => {
            return Err(Diagnosis::new(
                Code::PermissionDenied,
                format!("{DOING}: the server of {url} asks for a password, and there is none."),
            )
            .hint(password::hint())
            .detail("db", url.to_string()));
        }
        // An error at one of several addresses must not stop the search.
        Err(Some(error)) => Err(tls::distrust(&error, url).unwrap_or_else(|| diagnose(error, url, DOING))),
        Err(None) => Err(server.no_answer(DOING)),
    })
}

/// The connection, once; `Err(None)` as of [`Server::wait`].
fn connection(
    server: &Server,
    config: &Config,
    until: Instant,
) -> Result<std::result::Result<Client, Option<tokio_postgres::Error>>> {
    // The library limits only the TCP connection: a server that accepts it and stays silent would be waited for without end during TLS
    // and the password.
    let patience = until.saturating_duration_since(Instant::now());
    if !server.url().is_verified() {
        return Ok(server.wait_for(patience, async {
            let (client, connection) = config.connect(NoTls).await?;
            tokio::spawn(connection);
            Ok(client)
        }));
    }
    let tls = tls::connector(server.url())?;
    Ok(server.wait_for(patience, async {
        let (client, connection) = config.connect(tls).await?;
        tokio::spawn(connection);
        Ok(client)
    }))
}

fn lacks_password(error: &tokio_postgres::Error) -> bool {
    std::error::Error::source(error).is_some_and(|source| source.to_string().contains("password missing"))
}

/// How the addresses of a host are connected to. Errors: `unreachable` for a name that has none.
fn configs(server: &Server, host: &Host) -> Result<Vec<Config>> {
    let url = server.url();
    let patience = server.connect_timeout();
    let config = config(url, host, patience)?;
    match host {
        Host::Socket(..) => Ok(vec![config]),
        Host::Tcp(name, _) => {
            let found =
                server.look_up(patience, names::addresses(name)).map_err(|why| unknown_host(url, name, &why))?;
            Ok(found.into_iter().map(|address| config.clone().hostaddr(address).clone()).collect())
        }
    }
}

/// How a host is connected to, without its address.
fn config(url: &ServerUrl, host: &Host, patience: Duration) -> Result<Config> {
    let user = match &url.user {
        Some(user) => user.clone(),
        None => own_name()?,
    };
    let mut config = Config::new();
    match host {
        Host::Socket(directory, port) => config.host_path(directory).port(*port),
        Host::Tcp(name, port) => config.host(name).port(*port),
    };
    if let Some(password) = password::find(host, &url.database, &user) {
        config.password(password);
    }
    config
        .user(user)
        .dbname(&url.database)
        .application_name("ic")
        .ssl_mode(if url.is_verified() { SslMode::Require } else { SslMode::Disable })
        .connect_timeout(patience)
        // By default, the kernel tries to reach a server that is gone for a quarter of an hour.
        .tcp_user_timeout(Duration::from_secs(20))
        .keepalives_idle(Duration::from_secs(20));
    if let Some(binding) = url.channel_binding {
        config.channel_binding(match binding {
            ChannelBinding::Disable => Binding::Disable,
            ChannelBinding::Prefer => Binding::Prefer,
            ChannelBinding::Require => Binding::Require,
        });
    }
    // A single host may be a standby, which can be read. Of several, the one that takes writes is meant.
    if url.hosts.len() > 1 {
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
    Ok(config)
}

fn unknown_host(url: &ServerUrl, name: &str, why: &str) -> Diagnosis {
    Diagnosis::new(Code::Unreachable, format!("connecting: the address of {name} cannot be found: {why}."))
        .hint("is its name right? what /etc/hosts and the servers of /etc/resolv.conf know is found")
        .detail("db", url.to_string())
}

/// Who this process is to a server that is told no name: `PGUSER`, else the user of the system.
fn own_name() -> Result<String> {
    if let Ok(user) = std::env::var("PGUSER") {
        return Ok(user);
    }
    // Read as a file: the C library would load modules for it, which a static program must not do (docs/adr/0038).
    let uid = rustix::process::geteuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let named = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        // `ann:x:1000:1000:Ann:/home/ann:/bin/sh`: after the name, the second field is the number.
        (fields.nth(1)? == uid).then(|| name.to_owned())
    });
    named.or_else(|| std::env::var("USER").ok()).ok_or_else(|| {
        Diagnosis::new(Code::InvalidValue, "It is not known as whom to connect to the server.")
            .hint("name the user: postgres://USER@HOST/DATABASE")
    })
}
