//! Faults: triggers that abort, full disks, read-only places, closed outputs, damaged and foreign files, held locks.
//! Nothing is half done, every error has a code, nothing panics.

mod damage;
mod disk;
mod filled;
mod foreign;
mod locks;
mod log;
mod output;
mod swapped;
mod triggers;
mod verbs;
