//! The ledger itself.

pub(crate) mod health;
pub(crate) mod init;
pub(crate) mod version;
pub(crate) mod r#where;
