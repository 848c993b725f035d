//! One transaction on the server. Statements whose answers are not needed travel together with the next one.

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::sync::Arc;

use ic_base::{Code, Diagnosis, Result};
use tokio_postgres::{Client, SimpleQueryMessage};

use super::Server;
use super::error::{ServerFault, diagnose, fault_of};
use super::flight::{Answer, ServerRequest, fly};
use super::value::bind;
use crate::error::changed_other_than_one;
use crate::faults;
use crate::hash::parse_hex;
use crate::values::{EventHead, LedgerRow, Param, RowSource, ServerRow};

/// How many rows of a long answer are held at a time.
const CHUNK: usize = 500;
/// How many requests travel together at most.
const TOGETHER: usize = 1000;

/// A statement that fails as if another transaction were in the way: tests send it.
const CONFLICT: &str = "DO $$ BEGIN RAISE 'in the way, for a test' USING ERRCODE = '40001'; END $$";

/// A transaction that begins with its first statement.
pub(crate) struct OpenTransaction<'s> {
    server: &'s Server,
    writes: bool,
    client: RefCell<Option<Arc<Client>>>,
    /// Changes whose answers are not waited for; sent with the next request.
    queue: RefCell<Vec<ServerRequest>>,
    cursors: Cell<u32>,
    head: Cell<Option<EventHead>>,
    /// The newest event that this transaction appended.
    appended: Cell<Option<EventHead>>,
    fault: Cell<Option<ServerFault>>,
}

/// How a commit ended.
pub(super) enum Committed {
    Yes,
    No(Diagnosis),
    /// It was sent, and the answer did not come.
    Unknown(Diagnosis),
}

impl<'s> OpenTransaction<'s> {
    pub(super) fn to_read(server: &'s Server) -> Self {
        Self::new(server, false)
    }

    pub(super) fn to_write(server: &'s Server) -> Self {
        Self::new(server, true)
    }

    fn new(server: &'s Server, writes: bool) -> Self {
        Self {
            server,
            writes,
            client: RefCell::new(None),
            queue: RefCell::default(),
            cursors: Cell::new(0),
            head: Cell::new(None),
            appended: Cell::new(None),
            fault: Cell::new(None),
        }
    }

    /// What went wrong in it, whatever became of the error above.
    pub(super) fn fault(&self) -> Option<ServerFault> {
        self.fault.get()
    }

    pub(super) fn appended_head(&self) -> Option<EventHead> {
        self.appended.get()
    }

    /// The newest event, if the lock has said so and nothing was appended since.
    pub(crate) fn head(&self) -> Option<EventHead> {
        self.head.get()
    }

    pub(crate) fn set_appended(&self, head: EventHead) {
        self.appended.set(Some(head));
        self.head.set(Some(head));
    }

    /// All rows of a question.
    pub(crate) fn rows(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<ServerRow>> {
        let request = ServerRequest::Ask(sql.to_owned(), bind(params)?);
        match self.send(vec![request], "reading the ledger")?.pop() {
            Some(Answer::Rows(rows)) => Ok(rows),
            _ => Ok(Vec::new()),
        }
    }

    /// The first row of a question, mapped.
    pub(crate) fn first<T>(
        &self,
        sql: &str,
        params: &[Param<'_>],
        map: impl FnOnce(&LedgerRow<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        self.rows(sql, params)?.first().map(|row| map(&LedgerRow(RowSource::Server(row)))).transpose()
    }

    /// Gives each row to `visit`, which may send other statements in between: the rows come in parts.
    pub(crate) fn each(
        &self,
        sql: &str,
        params: &[Param<'_>],
        mut visit: impl FnMut(&LedgerRow<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        // A visitor may open another cursor while this one is open, so each has a name of its own.
        let number = self.cursors.get() + 1;
        self.cursors.set(number);
        let declare = format!("DECLARE ic_{number} NO SCROLL CURSOR FOR {sql}");
        let fetch = || ServerRequest::Ask(format!("FETCH {CHUNK} FROM ic_{number}"), Vec::new());
        let mut answers =
            self.send(vec![ServerRequest::Change(declare, bind(params)?), fetch()], "reading the ledger")?;
        while let Some(Answer::Rows(rows)) = answers.pop() {
            for row in &rows {
                // On a break, the cursor stays open: the end of the transaction closes it.
                if visit(&LedgerRow(RowSource::Server(row)))?.is_break() {
                    return Ok(());
                }
            }
            // A part that is not full is the last one: no further question is sent to find that out.
            if rows.len() < CHUNK {
                break;
            }
            answers = self.send(vec![fetch()], "reading the ledger")?;
        }
        Ok(())
    }

    /// Changes rows and says how many.
    pub(crate) fn execute(&self, sql: &str, params: &[Param<'_>]) -> Result<usize> {
        let request = ServerRequest::Change(sql.to_owned(), bind(params)?);
        match self.send(vec![request], "writing the ledger")?.pop() {
            Some(Answer::Changed(rows)) => Ok(usize::try_from(rows).unwrap_or(usize::MAX)),
            _ => Ok(0),
        }
    }

    /// Changes one row. It travels with what is asked next, or with the commit: an error is that one's.
    pub(crate) fn execute_one(&self, sql: &str, params: &[Param<'_>]) -> Result<()> {
        let request = ServerRequest::Change(sql.to_owned(), bind(params)?);
        let waiting = {
            let mut queue = self.queue.borrow_mut();
            queue.push(request);
            queue.len()
        };
        if waiting >= TOGETHER { self.flush() } else { Ok(()) }
    }

    fn flush(&self) -> Result<()> {
        if self.queue.borrow().is_empty() { Ok(()) } else { self.send(Vec::new(), "writing the ledger").map(drop) }
    }

    /// Sends what is queued and `last`, and returns the answers to `last`.
    fn send(&self, last: Vec<ServerRequest>, doing: &str) -> Result<Vec<Answer>> {
        let queued = self.queue.take();
        let waited_for = last.len();
        let mut requests = queued;
        let changes = requests.len();
        requests.extend(last);
        let mut answers = self.fly(requests, doing)?;
        // In this order: the opening if it was sent now, the queued changes, what is waited for.
        let asked = answers.split_off(answers.len() - waited_for);
        // The opening comes before the changes, if it was sent now.
        let opened = answers.len() - changes;
        for answer in answers.iter().skip(opened) {
            if let Answer::Changed(rows) = answer
                && *rows != 1
            {
                // From here on `fly` refuses every request: the transaction must not be committed with half of its changes.
                self.fault.set(Some(ServerFault::Final));
                return Err(changed_other_than_one(*rows, "a queued statement"));
            }
        }
        Ok(asked)
    }

    /// One round trip. The first also begins the transaction; where that finds the connection lost, it is made anew: nothing was seen or
    /// done yet.
    fn fly(&self, requests: Vec<ServerRequest>, doing: &str) -> Result<Vec<Answer>> {
        if self.fault.get().is_some() {
            return Err(spoilt());
        }
        let mut requests = requests;
        let begins = self.client.borrow().is_none();
        if begins {
            requests.insert(0, ServerRequest::Batch(self.server.opening(self.writes)));
        }
        for request in &requests {
            faults::statement(request.sql());
        }
        // Reads never conflict.
        if self.writes
            && let Some(at) = (usize::from(begins)..requests.len()).find(|_| faults::is_conflict_due())
        {
            requests.insert(at, ServerRequest::Batch(CONFLICT.to_owned()));
        }
        // A lost connection is made anew only if nothing can have been committed: otherwise a change could be made twice.
        let can_try_again = begins && !requests.iter().any(is_commit);
        let mut tried = false;
        loop {
            let client = match self.client.borrow().clone() {
                Some(client) => client,
                None => self.server.client()?,
            };
            match self.server.wait(fly(&client, &requests)) {
                Ok(answers) => {
                    if begins {
                        // Only now is it the connection of this transaction: until the first answer, it may be made anew.
                        self.server.dangles.set(false);
                        *self.client.borrow_mut() = Some(client);
                        self.opened(&answers)?;
                    }
                    return Ok(answers);
                }
                Err(error) => {
                    let fault = error.as_ref().map_or(ServerFault::Lost, fault_of);
                    if fault == ServerFault::Lost {
                        self.server.forget();
                        if can_try_again && !tried && error.is_some() {
                            tried = true;
                            continue;
                        }
                    }
                    // The connection is kept even after an error, so that `end` rolls back what was begun on it.
                    self.fault.set(Some(fault));
                    *self.client.borrow_mut() = Some(client);
                    return Err(match error {
                        Some(error) => self.server.told_apart(diagnose(error, self.server.url(), doing), begins),
                        None => self.server.no_answer(doing),
                    });
                }
            }
        }
    }

    /// Reads what the opening said: the version of the schema, and the newest event.
    fn opened(&self, answers: &[Answer]) -> Result<()> {
        let Some(Answer::Batch(said)) = answers.first() else { return Ok(()) };
        let mut rows = said.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        // In the order of the opening's statements: the version, then the head if the transaction writes.
        let version = rows.next().and_then(|row| row.get(0)?.parse().ok());
        if let Err(error) = self.server.require_version(version) {
            self.fault.set(Some(ServerFault::Final));
            return Err(error);
        }
        self.head.set(rows.next().and_then(|row| Some((row.get(0)?.parse().ok()?, parse_hex(row.get(1)?)?))));
        Ok(())
    }

    /// Commits what was written; a transaction without a statement has nothing to commit.
    pub(super) fn commit(&self) -> Committed {
        if self.client.borrow().is_none() && self.queue.borrow().is_empty() {
            return Committed::Yes;
        }
        let mut requests: Vec<ServerRequest> = self.queue.take().into_iter().map(guarded).collect();
        requests.push(ServerRequest::Batch("COMMIT".to_owned()));
        match self.fly(requests, "committing to the ledger") {
            Ok(_) => {
                faults::statement("-- committed");
                Committed::Yes
            }
            // The server may have committed before the connection was lost: only the hash of the newest event can tell.
            Err(error) if self.fault.get() == Some(ServerFault::Lost) => Committed::Unknown(error),
            Err(error) => Committed::No(error),
        }
    }

    /// Ends it without a change. A read is ended by the next transaction, or by the end of the connection. A write holds the head's
    /// lock, so it is ended now.
    pub(super) fn end(&self) {
        self.queue.borrow_mut().clear();
        if self.client.take().is_some_and(|client| !client.is_closed()) {
            self.server.dangles.set(true);
            if self.writes {
                self.server.let_go();
            }
        }
    }
}

/// A change that makes the server roll the transaction back unless it changed one row. It divides by zero then: the commit travels with it,
/// so there is no time to look at the count.
fn guarded(request: ServerRequest) -> ServerRequest {
    match request {
        // An INSERT of one row adds it or fails. Only an UPDATE can change another number of rows unseen.
        ServerRequest::Change(sql, values) if sql.trim_start().starts_with("UPDATE") => ServerRequest::Ask(
            format!("WITH changed AS ({sql} RETURNING 1) SELECT 1 / (count(*) = 1)::int FROM changed"),
            values,
        ),
        other => other,
    }
}

fn is_commit(request: &ServerRequest) -> bool {
    matches!(request, ServerRequest::Batch(sql) if sql == "COMMIT")
}

fn spoilt() -> Diagnosis {
    Diagnosis::new(Code::Internal, "A statement was run after one that failed in the same transaction.")
}
