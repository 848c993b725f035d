//! The table `checkpoints`.

use std::path::{Path, PathBuf};

use ic_base::mask::mask_optional;
use ic_base::{CheckpointId, Code, DispatchId, Result, RunId, Seq, Timestamp, reversed_digits};
use ic_ledger::events::{EventType, Hash, NewEvent, hex};
use ic_ledger::reference::{self, Referent};
use ic_ledger::{LedgerRow, Snapshot, Transaction, path_bytes};
use serde_json::json;

use crate::capture::{CaptureCounts, Captured};
use crate::objects::Stored;

mod list;
pub use list::{
    CheckpointFilter, all_kept, by_hand_between, changed_between, children, latest_of_lineage, list, look_since,
    manual_of_run, manual_of_run_since, named, newest_by_hand, newest_look, newest_of_root, newest_of_root_until,
    newest_of_work, newest_of_work_until, of_advance, of_event, of_root_between, of_run_named, of_unfinished_runs,
    oldest_kept, roots,
};

/// How checkpoints are referred to.
pub const REFERENT: Referent = Referent {
    table: "checkpoints",
    noun: "checkpoint",
    not_found: Code::CheckpointNotFound,
    listed_by: "ic checkpoint list",
};

ic_base::words! {
    /// Why a checkpoint was taken.
    pub enum CheckpointKind {
        /// A person or a script asked for it.
        Manual = "manual",
        /// An advance, an executor or a hook took it.
        Auto = "auto",
        /// What a restore was about to change.
        Safety = "safety",
        /// What a restore left.
        Restored = "restored",
    }
}

/// What a checkpoint belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckpointLink {
    /// What it is called.
    pub name: Option<String>,
    /// The message that it was taken for.
    pub message: Option<String>,
    /// The conversation it belongs to.
    pub conversation: Option<String>,
    /// The workflow it belongs to.
    pub workflow: Option<String>,
    /// The run it belongs to.
    pub run_id: Option<RunId>,
    /// The phase that the run was in; `None` outside of runs.
    pub phase: Option<String>,
    /// The number of the workflow's step.
    pub step: Option<i64>,
    /// The name of the workflow's step.
    pub step_name: Option<String>,
    /// The dispatch it belongs to.
    pub dispatch_id: Option<DispatchId>,
    /// Whether it was taken at the beginning or the end of a tool call.
    pub of_call: bool,
}

/// A snapshot of a working tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointRecord {
    /// The id by which it is referred to, whole or by its last digits.
    pub id: CheckpointId,
    /// The event that recorded it.
    pub seq: Seq,
    /// The root whose tree it holds.
    pub root: PathBuf,
    /// Why it was taken.
    pub kind: CheckpointKind,
    /// What it belongs to.
    pub link: CheckpointLink,
    /// The checkpoint that it follows; `None`: it is the first of its line.
    pub parent_id: Option<CheckpointId>,
    /// The event that it was taken for.
    pub advance_seq: Option<Seq>,
    /// The root's directory object.
    pub tree: Hash,
    /// The object that has its [`crate::manifest::CheckpointManifest`].
    pub manifest: Hash,
    /// The hash of git's state in it, or of there being none.
    pub git_hash: Hash,
    /// Whether it holds everything that its user may expect in it.
    pub complete: bool,
    /// Whether the work before it had ended.
    pub settled: bool,
    /// How much it holds.
    pub counts: CaptureCounts,
    /// What it added to the store.
    pub stored: Stored,
    /// How long the capture took.
    pub duration_ms: u64,
    /// When it was taken.
    pub created_at: Timestamp,
    /// When it was pruned.
    pub pruned_at: Option<Timestamp>,
}

impl CheckpointRecord {
    /// Whether git was in the same state at both.
    pub fn has_git_as(&self, other: &Self) -> bool {
        self.git_hash == other.git_hash
    }

    // `from_row` reads these by their places, so a new column goes to the end.
    pub(crate) const COLUMNS: &'static str = "id, seq, root, kind, name, message, conversation, workflow, run_id, \
        phase, step, step_name, dispatch_id, parent_id, advance_seq, tree, manifest, complete, settled, files, \
        directories, symlinks, bytes, new_objects, stored_bytes, duration_ms, created_at, pruned_at, of_call, git_hash";

    pub(crate) fn from_row(row: &LedgerRow<'_>) -> Result<Self> {
        let number = |index| row.get::<i64>(index).map(i64::cast_unsigned);
        Ok(Self {
            id: CheckpointId::from_ledger(row.get(0)?),
            seq: row.get(1)?,
            root: row.path(2)?,
            kind: row.parse(3, "checkpoints", CheckpointKind::parse)?,
            link: CheckpointLink {
                name: row.get(4)?,
                message: row.get(5)?,
                conversation: row.get(6)?,
                workflow: row.get(7)?,
                run_id: row.get::<Option<String>>(8)?.map(RunId::from_ledger),
                phase: row.get(9)?,
                step: row.get(10)?,
                step_name: row.get(11)?,
                dispatch_id: row.get::<Option<String>>(12)?.map(DispatchId::from_ledger),
                of_call: row.get(28)?,
            },
            parent_id: row.get::<Option<String>>(13)?.map(CheckpointId::from_ledger),
            advance_seq: row.get(14)?,
            tree: row.get(15)?,
            manifest: row.get(16)?,
            git_hash: row.get(29)?,
            complete: row.get(17)?,
            settled: row.get(18)?,
            counts: CaptureCounts {
                files: number(19)?,
                directories: number(20)?,
                symlinks: number(21)?,
                bytes: number(22)?,
            },
            stored: Stored { new_objects: number(23)?, stored_bytes: number(24)? },
            duration_ms: number(25)?,
            created_at: Timestamp(row.get(26)?),
            pruned_at: row.get::<Option<i64>>(27)?.map(Timestamp),
        })
    }
}

/// What a new checkpoint is made of.
#[derive(Debug, Clone)]
pub struct NewCheckpoint<'a> {
    /// The id of the new row, which names its event too.
    pub id: &'a CheckpointId,
    /// The root of the tree that was captured: absolute.
    pub root: &'a Path,
    /// Why it was taken.
    pub kind: CheckpointKind,
    /// What it belongs to.
    pub link: &'a CheckpointLink,
    /// The checkpoint that it follows.
    pub parent_id: Option<&'a CheckpointId>,
    /// The event that it was taken for.
    pub advance_seq: Option<Seq>,
    /// The run's epoch, for the event.
    pub epoch: Option<i64>,
    /// What the capture found; its content is durable in the store already.
    pub captured: &'a Captured,
    /// The object that has its [`crate::manifest::CheckpointManifest`]; durable already.
    pub manifest: Hash,
    /// The hash of git's state in it.
    pub git_hash: Hash,
    /// Whether the work before it has ended.
    pub settled: bool,
    /// How long the capture took.
    pub duration_ms: u64,
}

/// Records a checkpoint, with its event. Its content is durable already.
pub fn add(tx: &Transaction<'_>, now: Timestamp, new: &NewCheckpoint<'_>) -> Result<CheckpointRecord> {
    // The event comes first, because the row has its seq.
    let seq = announce(tx, now, new)?;
    insert(tx, now, new, seq)
}

/// Records the event of a checkpoint alone; [`insert`] must follow in the same transaction.
pub fn announce(tx: &Transaction<'_>, now: Timestamp, new: &NewCheckpoint<'_>) -> Result<Seq> {
    let event = NewEvent {
        run_id: new.link.run_id.as_ref(),
        epoch: new.epoch,
        subject_id: Some(new.id.as_str()),
        to: Some(new.kind.as_str()),
        payload: Some(json!({
            // This text is for readers of events. The exact bytes are in the row.
            "root": new.root.to_string_lossy(),
            "tree": hex(&new.captured.root),
            "parent_id": new.parent_id.map(CheckpointId::as_str),
            "complete": new.captured.is_complete(),
        })),
        ..NewEvent::without_run(EventType::CheckpointCreated)
    };
    ic_ledger::events::append(tx, now, &event)
}

/// Records the row of a checkpoint whose event is `seq`.
pub fn insert(tx: &Transaction<'_>, now: Timestamp, new: &NewCheckpoint<'_>, seq: Seq) -> Result<CheckpointRecord> {
    let CheckpointLink { name, message, conversation, workflow, run_id, phase, step, step_name, dispatch_id, of_call } =
        new.link;
    // A message may hold a secret, and no row is ever deleted.
    let message = mask_optional(message.as_deref());
    let complete = new.captured.is_complete();
    let CaptureCounts { files, directories, symlinks, bytes } = new.captured.counts;
    let Stored { new_objects, stored_bytes } = new.captured.stored;
    tx.execute_one(
        "INSERT INTO checkpoints (id, reversed_id, seq, root, kind, name, message, conversation, workflow, run_id, \
         phase, step, step_name, dispatch_id, parent_id, advance_seq, tree, manifest, complete, settled, files, \
         directories, symlinks, bytes, new_objects, stored_bytes, duration_ms, created_at, of_call, git_hash) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, \
         $23, $24, $25, $26, $27, $28, $29, $30)",
        &[
            &new.id.as_str(),
            &reversed_digits(new.id.as_str()),
            &seq,
            &path_bytes(new.root),
            &new.kind.as_str(),
            name,
            &message.as_deref(),
            conversation,
            workflow,
            &run_id.as_ref().map(RunId::as_str),
            phase,
            step,
            step_name,
            &dispatch_id.as_ref().map(DispatchId::as_str),
            &new.parent_id.map(CheckpointId::as_str),
            &new.advance_seq,
            &new.captured.root,
            &new.manifest,
            &complete,
            &new.settled,
            &files.cast_signed(),
            &directories.cast_signed(),
            &symlinks.cast_signed(),
            &bytes.cast_signed(),
            &new_objects.cast_signed(),
            &stored_bytes.cast_signed(),
            &new.duration_ms.cast_signed(),
            &now.millis(),
            of_call,
            &new.git_hash,
        ],
    )?;
    // It is read from the ledger, so that the caller has the masked message, too.
    get(tx, new.id)
}

/// Gives a checkpoint another manifest: a purge took out what the one before it named.
pub fn set_manifest(tx: &Transaction<'_>, id: &CheckpointId, manifest: &Hash) -> Result<()> {
    tx.execute_one("UPDATE checkpoints SET manifest = $1 WHERE id = $2", &[manifest, &id.as_str()])
}

/// The checkpoint with this id. Errors: `checkpoint_not_found`.
pub fn get(snapshot: &Snapshot<'_>, id: &CheckpointId) -> Result<CheckpointRecord> {
    let sql = format!("SELECT {} FROM checkpoints WHERE id = $1", CheckpointRecord::COLUMNS);
    snapshot.query_opt(&sql, &[&id.as_str()], CheckpointRecord::from_row)?.ok_or_else(|| {
        ic_base::Diagnosis::new(Code::CheckpointNotFound, format!("There is no checkpoint {id}."))
            .hint("see: ic checkpoint list")
    })
}

/// The checkpoint that `text` names: an id, or the end of one.
///
/// Errors: `checkpoint_not_found`, `ambiguous_id`, `invalid_reference`.
pub fn resolve(snapshot: &Snapshot<'_>, text: &str) -> Result<CheckpointRecord> {
    reference::find(snapshot, REFERENT, CheckpointRecord::COLUMNS, text, CheckpointRecord::from_row)
}

/// Takes name and message out of the checkpoint that event `seq` recorded, if it recorded one.
pub fn redact(tx: &Transaction<'_>, seq: Seq) -> Result<()> {
    tx.execute("UPDATE checkpoints SET name = NULL, message = NULL WHERE seq = $1", &[&seq]).map(|_| ())
}

/// Records that some of a checkpoint's content is lost: it does not hold everything any more.
pub fn lose_some(tx: &Transaction<'_>, id: &CheckpointId) -> Result<()> {
    tx.execute_one("UPDATE checkpoints SET complete = 0 WHERE id = $1", &[&id.as_str()])
}

/// Marks a checkpoint as pruned, with its event; those that followed it follow its own parent from now on.
///
/// `reason` says by what: `retention`, `deleted`, `purged`, `lost`.
pub fn prune(tx: &Transaction<'_>, now: Timestamp, checkpoint: &CheckpointRecord, reason: &str) -> Result<()> {
    let event = NewEvent {
        run_id: checkpoint.link.run_id.as_ref(),
        subject_id: Some(checkpoint.id.as_str()),
        from: Some(checkpoint.kind.as_str()),
        reason: Some(reason),
        ..NewEvent::without_run(EventType::CheckpointPruned)
    };
    ic_ledger::events::append(tx, now, &event)?;
    tx.execute_one(
        // Of two prunes at the same time, the second finds no row and is rolled back with its event.
        "UPDATE checkpoints SET pruned_at = $1 WHERE id = $2 AND pruned_at IS NULL",
        &[&now.millis(), &checkpoint.id.as_str()],
    )?;
    tx.execute(
        "UPDATE checkpoints SET parent_id = $1 WHERE parent_id = $2",
        &[&checkpoint.parent_id.as_ref().map(CheckpointId::as_str), &checkpoint.id.as_str()],
    )
    .map(|_| ())
}
