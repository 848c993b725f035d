//! What others may have prepared, and what must not be written down: `docs/SECURITY.md` names these tests.

mod closed_directories;
mod files;
mod forms;
mod git;
mod ledgers;
mod limits;
mod project;
mod purge;
mod secrets;
mod steps;
mod terminal;
mod tripwires;
mod umask;
