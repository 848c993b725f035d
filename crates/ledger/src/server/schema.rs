//! Making the schema of a ledger on a server, and bringing it up to date.
//!
//! A ledger is migrated only on request: otherwise the first upgraded host would lock all others out. All migrations are one transaction
//! under the lock of the head: of many processes that try at once, one migrates, and a crash leaves the old schema whole.

use ic_base::{Code, Context, Diagnosis, Result};
use refinery_core::traits::sync as refinery_sync;
use refinery_core::{Migration, Runner};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::Server;
use super::error::diagnose;
use crate::faults;
use crate::migrate::{LATEST, newer};
use crate::server_url::ServerUrl;

mod embedded {
    refinery::embed_migrations!("../../migrations/postgres");
}

/// What the migrations run, in their order.
pub(super) fn statements() -> Vec<String> {
    let mut all = embedded::migrations::runner().get_migrations().clone();
    all.sort();
    all.iter().filter_map(|migration| migration.sql().map(str::to_owned)).collect()
}

/// Makes the ledger, unless it is there; in a schema of its own, or in an empty one of the name, as an administrator leaves it to a role
/// that may make none. Returns whether it was made.
///
/// Errors: `unreachable`, `permission_denied`, `foreign_database` for a schema of the name that is no ledger.
pub(crate) fn create(server: &Server, context: &Context) -> Result<bool> {
    let Server { url, .. } = server;
    let client = server.client()?;
    let name = &url.ledger;
    let said = |error| said(server, error, "making the ledger");
    // Asked before CREATE SCHEMA is tried: a refused statement would leave an error in the server's log.
    let asked = format!("SHOW server_encoding; SELECT 1 FROM pg_namespace WHERE nspname = '{name}'");
    let mut found = run(server, &client, &asked).map_err(said)?;
    let encoding = found.iter().position(|message| matches!(message, SimpleQueryMessage::Row(_)));
    if let Some(SimpleQueryMessage::Row(encoding)) = encoding.map(|at| found.remove(at)) {
        require_utf8(url, encoding.get(0).unwrap_or_default())?;
    }
    let is_there = has_row(&found);
    if is_there && !is_empty(server, &client)? {
        return require_ledger(server, &client).map(|()| false);
    }
    // One transaction for the schema, its migrations and the id: no process ever sees a part of a ledger.
    run(server, &client, "BEGIN").map_err(said)?;
    let made = if is_there { String::new() } else { format!("CREATE SCHEMA \"{name}\"; ") };
    match run(server, &client, &format!("{made}SET LOCAL search_path TO \"{name}\"")) {
        Ok(_) => {}
        // Another process made it a moment ago.
        Err(Some(e)) if matches!(e.code(), Some(&SqlState::DUPLICATE_SCHEMA | &SqlState::UNIQUE_VIOLATION)) => {
            run(server, &client, "ROLLBACK").map_err(said)?;
            return require_ledger(server, &client).map(|()| false);
        }
        Err(error) => return Err(said(error)),
    }
    if let Err(error) = apply(server, &client) {
        // Another process used the empty schema a moment ago.
        // Asked on a new connection: `apply` has closed the one on which it failed.
        let is_made = is_there && require_ledger(server, &*server.client()?).is_ok();
        return if is_made { Ok(false) } else { Err(error) };
    }
    let id = context.new_ledger_id();
    // An id has no quotes; removed anyway, because this text becomes part of a statement.
    let id = id.as_str().replace('\'', "");
    run(server, &client, &format!("INSERT INTO ledger (one, id, has_store) VALUES (1, '{id}', 0)")).map_err(said)?;
    run(server, &client, "COMMIT").map_err(said)?;
    faults::statement("-- committed");
    Ok(true)
}

/// Brings the ledger to the newest schema; returns the version that it had. Errors: `newer_schema`, `migration_failed` (nothing was changed), `busy`, `no_ledger`.
pub(crate) fn migrate(server: &Server) -> Result<i32> {
    let Server { url, options, .. } = server;
    let client = server.client()?;
    let said = |error| said(server, error, "bringing the ledger up to date");
    let patience = options.busy_timeout.as_millis().max(1);
    let opening = format!(
        "BEGIN; SET LOCAL search_path TO \"{}\"; SET LOCAL lock_timeout = {patience}; \
         SELECT 1 FROM event_head WHERE one = 1 FOR UPDATE; SELECT max(version) FROM refinery_schema_history",
        url.ledger
    );
    let answers = run(server, &client, &opening).map_err(said)?;
    // From the end: the row of the head comes before that of the version.
    let version = answers.iter().rev().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0)?.parse().ok(),
        _ => None,
    });
    let from = match version {
        Some(from) if from <= LATEST => from,
        refused => {
            // The head's lock must not stay with a connection that another ledger of this process may be given.
            let _ = run(server, &client, "ROLLBACK");
            return Err(refused.map_or_else(|| no_ledger(url), |from| newer(&url.to_string(), from)));
        }
    };
    if from < LATEST {
        apply(server, &client)?;
    }
    run(server, &client, "COMMIT").map_err(said)?;
    faults::statement("-- committed");
    Ok(from)
}

/// Errors: `invalid_value` for a database that cannot hold every text.
fn require_utf8(url: &ServerUrl, encoding: &str) -> Result<()> {
    if encoding == "UTF8" {
        return Ok(());
    }
    Err(Diagnosis::new(
        Code::InvalidValue,
        format!("The database of {url} has the encoding {encoding}; a ledger needs UTF8."),
    )
    .hint("make another one: CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0")
    .detail("db", url.to_string()))
}

fn has_row(answers: &[SimpleQueryMessage]) -> bool {
    answers.iter().any(|message| matches!(message, SimpleQueryMessage::Row(_)))
}

/// Whether the schema of the ledger's name has nothing in it, and the role may make something there. Errors: `unreachable`.
fn is_empty(server: &Server, client: &Client) -> Result<bool> {
    let sql = format!(
        "SELECT 1 FROM pg_namespace n WHERE nspname = '{}' AND has_schema_privilege(oid, 'CREATE') \
         AND has_schema_privilege(oid, 'USAGE') AND NOT EXISTS (SELECT FROM pg_class WHERE relnamespace = n.oid) \
         AND NOT EXISTS (SELECT FROM pg_proc WHERE pronamespace = n.oid) \
         AND NOT EXISTS (SELECT FROM pg_type WHERE typnamespace = n.oid)",
        server.url().ledger
    );
    let answers = run(server, client, &sql).map_err(|error| said(server, error, "looking for the ledger"))?;
    Ok(has_row(&answers))
}

/// Errors: `foreign_database`, `permission_denied`, `unreachable`.
fn require_ledger(server: &Server, client: &Client) -> Result<()> {
    let Server { url, .. } = server;
    let sql = format!(
        "SELECT count(*) FROM information_schema.tables WHERE table_schema = '{}' \
         AND table_name IN ('refinery_schema_history', 'events', 'event_head')",
        url.ledger
    );
    let answers = run(server, client, &sql).map_err(|error| said(server, error, "looking for the ledger"))?;
    let is_ledger =
        answers.iter().any(|message| matches!(message, SimpleQueryMessage::Row(row) if row.get(0) == Some("3")));
    if is_ledger {
        return Ok(());
    }
    let closed = format!(
        "SELECT 1 FROM pg_namespace WHERE nspname = '{}' AND NOT has_schema_privilege(oid, 'USAGE')",
        url.ledger
    );
    let answers = run(server, client, &closed).map_err(|error| said(server, error, "looking for the ledger"))?;
    if has_row(&answers) {
        return Err(closed_to(url));
    }
    Err(Diagnosis::new(
        Code::ForeignDatabase,
        format!("The database has a schema {:?} already, and it is no ledger of ic.", url.ledger),
    )
    .hint("choose another name: postgres://.../DATABASE?ledger=NAME")
    .detail("db", url.to_string()))
}

fn apply(server: &Server, client: &Client) -> Result<()> {
    let runner: Runner = embedded::migrations::runner().set_grouped(true);
    runner.run(&mut InTransaction { server, client }).map(drop).map_err(|e| {
        let why = std::error::Error::source(&e).map_or_else(|| e.to_string(), ToString::to_string);
        // The connection is closed, and the server rolls its transaction back.
        server.forget();
        Diagnosis::new(
            Code::MigrationFailed,
            format!(
                "The ledger could not be brought to schema {LATEST}: {}. Nothing was changed.",
                why.trim_end_matches('.')
            ),
        )
        .hint("the role must own the ledger's schema, and nothing but ic may have changed it")
        .caused_by(e)
    })
}

type Said = std::result::Result<Vec<SimpleQueryMessage>, Option<tokio_postgres::Error>>;

fn run(server: &Server, client: &Client, sql: &str) -> Said {
    faults::statement(sql);
    server.wait(client.simple_query(sql))
}

/// The diagnosis of a failed statement. The connection is closed, which ends the transaction on it.
fn said(server: &Server, error: Option<tokio_postgres::Error>, doing: &str) -> Diagnosis {
    server.forget();
    match error {
        Some(error) => diagnose(error, server.url(), doing),
        None => server.no_answer(doing),
    }
}

/// The refusal for a role that has no right to use the ledger's schema.
pub(super) fn closed_to(url: &ServerUrl) -> Diagnosis {
    Diagnosis::new(Code::PermissionDenied, format!("The role of the connection has no right to use the ledger {url}."))
        .hint("have its owner grant what every day needs: docs/FLEET.md, Setting it up")
        .detail("db", url.to_string())
}

pub(super) fn no_ledger(url: &ServerUrl) -> Diagnosis {
    Diagnosis::new(Code::NoLedger, format!("There is no ledger {url}."))
        .hint("create it with: ic init --db URL")
        .detail("db", url.to_string())
}

/// The connection as refinery wants it, inside the transaction that it already has.
struct InTransaction<'s> {
    server: &'s Server,
    client: &'s Client,
}

/// What went wrong, for refinery, which wants an error that can be shown.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Failed(String);

impl InTransaction<'_> {
    fn run(&self, sql: &str) -> std::result::Result<Vec<SimpleQueryMessage>, Failed> {
        run(self.server, self.client, sql)
            .map_err(|error| Failed(said(self.server, error, "migrating").message().to_owned()))
    }
}

impl refinery_sync::Transaction for InTransaction<'_> {
    type Error = Failed;

    fn execute<'a, T: Iterator<Item = &'a str>>(&mut self, queries: T) -> std::result::Result<usize, Failed> {
        let mut count = 0;
        for query in queries {
            self.run(query)?;
            count += 1;
        }
        Ok(count)
    }
}

impl refinery_sync::Query<Vec<Migration>> for InTransaction<'_> {
    fn query(&mut self, query: &str) -> std::result::Result<Vec<Migration>, Failed> {
        let answers = self.run(query)?;
        let rows = answers.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        rows.map(|row| {
            let read = || {
                let applied_on =
                    time::OffsetDateTime::parse(row.get(2)?, &time::format_description::well_known::Rfc3339);
                let version = row.get(0)?.parse().ok()?;
                Some(Migration::applied(version, row.get(1)?.to_owned(), applied_on.ok()?, row.get(3)?.parse().ok()?))
            };
            read().ok_or_else(|| Failed("the history of the schema cannot be read".to_owned()))
        })
        .collect()
    }
}

impl refinery_sync::Migrate for InTransaction<'_> {}

#[cfg(test)]
mod tests {
    use super::{LATEST, Migration, embedded};

    #[test]
    fn both_databases_have_the_same_migrations() {
        let names = |directory: &str| {
            let files = std::fs::read_dir(format!("../../migrations/{directory}")).unwrap();
            let mut names: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
            names.sort();
            names
        };
        assert_eq!(names("sqlite"), names("postgres"));
        let newest = embedded::migrations::runner().get_migrations().iter().map(Migration::version).max();
        assert_eq!(newest, Some(LATEST));
    }
}
