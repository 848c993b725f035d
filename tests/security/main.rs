//! What others may have prepared, and what must not be written down: `docs/SECURITY.md` names these tests.

mod closed;
mod files;
mod forms;
mod git;
mod ledgers;
mod limits;
mod purge;
mod secrets;
mod steps;
mod terminal;
mod tripwires;
mod umask;
mod world;
