//! The last stage: an outside store of vectors, by a command. The `vec0` tables in the database were cut with its other tables.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ic_base::{Code, Diagnosis, Result};
use ic_dispatch::process::{ProcessIdentity, end_group};
use ic_effects::child::{self, ChildCommand, ChildExit, Program};
use ic_effects::tail::with_tail;
use ic_effects::undo::{GRACE, describe};
use ic_kernel::Kernel;
use ic_rewind::journal::{self, RewindEntry};

/// A flag that ends a rewind early and may be set by another thread.
#[derive(Debug, Clone, Default)]
pub struct VectorWatch {
    /// Set by an interrupt: then the command for vectors is ended.
    pub interrupted: Arc<AtomicBool>,
}

/// The longest log of the command, in bytes.
const LONGEST_LOG: u64 = 8 << 20;

/// Runs the command, if one is configured, and records that every stage is done.
///
/// The command gets the rewind's id and the task in its environment, and may run again with the same.
pub(super) fn carry_out(kernel: &Kernel, entry: &RewindEntry, watch: &VectorWatch) -> Result<()> {
    if let Some(argv) = &entry.setup.vectors {
        run(kernel, entry, argv, watch)?;
    }
    // Also written for a caller whose dispatch was rolled back by now: the rows are gone, and the record must say so.
    kernel.write_late_too(|tx, now| journal::finish(tx, now, entry))
}

fn run(kernel: &Kernel, entry: &RewindEntry, argv: &[String], watch: &VectorWatch) -> Result<()> {
    let order = entry.deleted.snapshot_created_at.to_string();
    let variables = [
        ("IC_REWIND", entry.id.as_str()),
        ("IC_TASK", entry.task_id.as_str()),
        ("IC_SNAPSHOT_CREATED_AT", order.as_str()),
    ];
    let program = Program::Argv(argv.iter().map(Into::into).collect());
    let log = entry.archive.with_extension("log");
    let command = ChildCommand {
        program: &program,
        directory: &entry.root,
        environment: variables.map(|(name, value)| (name.into(), value.into())).to_vec(),
        // The command must not report as the work of the dispatch that rewinds.
        removed: vec!["IC_DISPATCH".into()],
        // How long an outside store takes is not known here; Ctrl-C ends it.
        timeout: None,
        grace: GRACE,
        log: &log,
        longest_log: LONGEST_LOG,
    };
    // This is called before the command runs anything: whatever kills this process later, the next call finds the
    // command and ends it.
    let mut born = |identity: &ProcessIdentity| {
        let child = serde_json::to_string(identity)
            .map_err(|e| Diagnosis::new(Code::Internal, format!("writing the journal: {e}.")))?;
        kernel.write_late_too(|tx, now| journal::set_child(tx, now, &entry.id, Some(&child)))
    };
    let is_interrupted = || watch.interrupted.load(Ordering::Relaxed);
    let outcome = child::run(&command, &mut born, &mut |_| {}, &is_interrupted)?;
    match outcome.exit {
        ChildExit::Code(0) => Ok(()),
        other => Err(Diagnosis::new(
            Code::Io,
            format!("The command for vectors failed: {}.", with_tail(&describe(&other), &outcome.tail)),
        )),
    }
}

/// Ends the command that a dead process left running: two must not prune at once.
pub(super) fn end_leftover(entry: &RewindEntry) -> Result<()> {
    let child = entry.child.as_deref().and_then(|text| serde_json::from_str::<ProcessIdentity>(text).ok());
    match child {
        Some(child) => end_group(&child, GRACE).map(|_| ()),
        None => Ok(()),
    }
}
