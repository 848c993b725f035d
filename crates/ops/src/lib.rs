//! What runs, their work and their history are told and asked: each verb one transaction over the owners below.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

pub mod advance;
pub mod agent;
pub mod artifact;
pub mod blame;
pub mod consume;
pub mod direct_work;
pub mod dispatch;
pub mod exec;
pub mod forks;
pub mod history;
pub mod hooks;
pub mod redact;
pub mod run;
pub mod status;
pub mod wait;
