//! In place of the module `server` where the program is built without the feature `server`: no PostgreSQL, no TLS, no DNS.
//!
//! A URL is understood and refused. No value of these types exists, so the compiler knows that nothing else of a server is reached.

use std::ops::ControlFlow;

use ic_base::{Context, Result};

use crate::connection::OpenOptions;
use crate::server_url::ServerUrl;
use crate::values::{EventHead, LedgerRow, Param, ServerRow};

pub(crate) use {NoServer as Server, NoTransaction as OpenTransaction};

pub(crate) enum NoServer {}

/// The lifetime is that of the session, as where there is one.
pub(crate) struct NoTransaction<'s> {
    session: &'s NoServer,
}

impl NoServer {
    pub(crate) fn new(url: &ServerUrl, _: OpenOptions) -> Result<Self> {
        Err(url.without_servers())
    }

    pub(crate) fn url(&self) -> &ServerUrl {
        match *self {}
    }

    pub(crate) fn read<T>(&self, _: impl FnOnce(&NoTransaction<'_>) -> Result<T>) -> Result<T> {
        match *self {}
    }

    pub(crate) fn write<T>(&self, _: impl FnMut(&NoTransaction<'_>) -> Result<T>) -> Result<T> {
        match *self {}
    }

    pub(crate) fn at_once<T>(&self, _: impl FnOnce() -> T) -> T {
        match *self {}
    }

    pub(crate) fn wipe(&self) -> Result<()> {
        match *self {}
    }

    pub(crate) fn head_version(&self) -> Result<i64> {
        match *self {}
    }
}

impl NoTransaction<'_> {
    pub(crate) fn rows(&self, _: &str, _: &[Param<'_>]) -> Result<Vec<ServerRow>> {
        match *self.session {}
    }

    pub(crate) fn first<T>(
        &self,
        _: &str,
        _: &[Param<'_>],
        _: impl FnOnce(&LedgerRow<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        match *self.session {}
    }

    pub(crate) fn each(
        &self,
        _: &str,
        _: &[Param<'_>],
        _: impl FnMut(&LedgerRow<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        match *self.session {}
    }

    pub(crate) fn execute(&self, _: &str, _: &[Param<'_>]) -> Result<usize> {
        match *self.session {}
    }

    pub(crate) fn execute_one(&self, _: &str, _: &[Param<'_>]) -> Result<()> {
        match *self.session {}
    }

    pub(crate) fn head(&self) -> Option<EventHead> {
        match *self.session {}
    }

    pub(crate) fn set_appended(&self, _: EventHead) {
        match *self.session {}
    }
}

/// Nothing keeps a connection.
pub fn keep_connections() {}

pub(crate) mod schema {
    use super::{Context, NoServer, Result};

    pub(crate) fn create(server: &NoServer, _: &Context) -> Result<bool> {
        match *server {}
    }

    pub(crate) fn migrate(server: &NoServer) -> Result<i32> {
        match *server {}
    }
}
