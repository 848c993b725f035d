//! Several requests that travel together: one round trip for all.

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row, SimpleQueryMessage};

use super::value::Owned;

/// A request to the server, with its values, as it waits to be sent.
#[derive(Debug)]
pub(super) enum ServerRequest {
    /// Statements without values, sent as one text.
    Batch(String),
    /// A statement that changes rows.
    Change(String, Vec<Owned>),
    /// A statement that returns rows.
    Ask(String, Vec<Owned>),
}

/// What the server says to one.
#[derive(Debug)]
pub(super) enum Answer {
    /// What the statements of a batch returned.
    Batch(Vec<SimpleQueryMessage>),
    /// How many rows were changed.
    Changed(u64),
    /// The rows of a question.
    Rows(Vec<Row>),
}

impl ServerRequest {
    /// What is sent, for the record of statements.
    pub(super) fn sql(&self) -> &str {
        match self {
            Self::Batch(sql) | Self::Change(sql, _) | Self::Ask(sql, _) => sql,
        }
    }
}

type Answering<'a> = Pin<Box<dyn Future<Output = Result<Answer, Error>> + 'a>>;

fn send<'a>(client: &'a Client, request: &'a ServerRequest) -> Answering<'a> {
    match request {
        ServerRequest::Batch(sql) => Box::pin(async move { client.simple_query(sql).await.map(Answer::Batch) }),
        ServerRequest::Change(sql, values) => {
            Box::pin(async move { client.execute_typed(sql, &typed(values)).await.map(Answer::Changed) })
        }
        ServerRequest::Ask(sql, values) => {
            Box::pin(async move { client.query_typed(sql, &typed(values)).await.map(Answer::Rows) })
        }
    }
}

/// Unnamed and with their types: nothing is prepared, so that a pooler may give each transaction another connection.
fn typed(values: &[Owned]) -> Vec<(&(dyn ToSql + Sync), Type)> {
    values.iter().map(|value| (value as &(dyn ToSql + Sync), value.sql_type())).collect()
}

/// Sends all, in their order, before it waits for the first answer. The error is that of the first that failed: what follows a failure in a
/// transaction only says that there was one.
pub(super) async fn fly(client: &Client, requests: &[ServerRequest]) -> Result<Vec<Answer>, Error> {
    let mut waiting: Vec<Option<Answering<'_>>> = requests.iter().map(|request| Some(send(client, request))).collect();
    let mut answers: Vec<Option<Result<Answer, Error>>> = requests.iter().map(|_| None).collect();
    // A request is sent when its future is asked for the first time.
    std::future::poll_fn(|context| {
        let mut is_done = true;
        for (request, answer) in waiting.iter_mut().zip(&mut answers) {
            let Some(future) = request else { continue };
            match future.as_mut().poll(context) {
                Poll::Ready(said) => {
                    // A future that has answered must not be asked again, so it is dropped.
                    *answer = Some(said);
                    *request = None;
                }
                Poll::Pending => is_done = false,
            }
        }
        if is_done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    answers.into_iter().flatten().collect()
}
