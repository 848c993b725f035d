//! How long the server is waited for: each answer, the first of a connection, and all of them together for a caller that must not be
//! delayed.

use std::future::Future;
use std::time::Duration;

use ic_base::{Code, Diagnosis};
use tokio_postgres::Error;

use super::{Server, connect};

/// How much longer than a lock an answer is waited for, before the server counts as gone.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

impl Server {
    /// How long a caller with limited patience still waits; `None`: no limit but those of each answer.
    pub(super) fn left(&self) -> Option<Duration> {
        let patience = self.options.patience?;
        let most = if self.has_answered.get() { patience.all } else { patience.silence };
        Some(most.saturating_sub(self.begun.elapsed()))
    }

    /// How long a host that was connected to may take for its first answer, beside what others' locks take.
    pub(super) fn connect_timeout(&self) -> Duration {
        Duration::from_secs(u64::from(self.url.connect_timeout.unwrap_or(connect::CONNECT_TIMEOUT).max(1)))
    }

    /// The result of a request; `Err(None)`: there was no answer in time.
    ///
    /// Before its first answer, a server that accepts the connection may be stuck: it gets no more time than a connection gets.
    pub(super) fn wait<T>(
        &self,
        request: impl Future<Output = std::result::Result<T, Error>>,
    ) -> std::result::Result<T, Option<Error>> {
        let more = if self.has_answered.get() { PATIENCE } else { self.connect_timeout() };
        let result = self.wait_for(self.options.busy_timeout + more, request);
        // An error is an answer as well.
        if matches!(&result, Ok(_) | Err(Some(_))) {
            self.has_answered.set(true);
        }
        result
    }

    /// The result of what takes no longer than `most`; `Err(None)`: it did not come in time.
    pub(super) fn wait_for<T, E>(
        &self,
        most: Duration,
        request: impl Future<Output = std::result::Result<T, E>>,
    ) -> std::result::Result<T, Option<E>> {
        let most = self.left().map_or(most, |left| left.min(most));
        self.runtime.block_on(async {
            match tokio::time::timeout(most, request).await {
                Ok(result) => result.map_err(Some),
                Err(_) => Err(None),
            }
        })
    }

    /// What a lookup finds in time.
    pub(super) fn look_up<T>(
        &self,
        patience: Duration,
        lookup: impl Future<Output = std::result::Result<T, String>>,
    ) -> std::result::Result<T, String> {
        self.wait_for(patience, lookup)
            .map_err(|error| error.unwrap_or_else(|| "there was no answer in time".to_owned()))
    }

    pub(super) fn no_answer(&self, doing: &str) -> Diagnosis {
        Diagnosis::new(Code::Unreachable, format!("{doing}: the server of {} does not answer.", self.url))
            .hint("is the server up, and the way to it open?")
            .detail("db", self.url.to_string())
    }
}
