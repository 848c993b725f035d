//! Many real processes at once: no call fails with a lock error, one advance wins per phase and epoch, a rollback always
//! succeeds, and the events tell the same story as the rows.

mod crowd;
mod init;
mod runs;
mod simultaneous_calls;
