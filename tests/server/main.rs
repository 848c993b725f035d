//! The ledger on PostgreSQL: what is promised of it, against a private server that each test has for itself.
//!
//! Where the programs of PostgreSQL are missing the tests say so and end: `.ci/run` installs them.

mod chaos;
mod cluster;
mod crowd;
mod event_spool;
mod login;
mod lost_connection;
mod proxy;
mod refused;
mod schema;
mod silent;
mod story;
mod trips;
