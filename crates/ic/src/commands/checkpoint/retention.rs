//! `ic checkpoint prune`, `delete`, `purge` and `verify`

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use ic_base::{Code, Result};
use ic_store::reserve;
use ic_worktree::retention::{self, GRACE, Pruned, Request};
use ic_worktree::{Which, Workspace, purge, repair};

use crate::exit::Exit;
use crate::json::{PruneJson, PurgeJson, VerifyObjectsJson};
use crate::render;
use crate::session::Session;

/// Prune old checkpoints, and content that no checkpoint needs.
///
/// Checkpoints made by `create` or with a name stay, unless the configuration says otherwise; so do the newest of each
/// lineage, and those that an unfinished run or an undo needs. The rows stay; only content is removed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic checkpoint prune --dry-run
  ic checkpoint prune --older-than 14d --keep-last 10
  ic checkpoint prune --grace 0s        # no capture is running")]
pub(crate) struct Prune {
    /// Only those older than DUR [default: rollback.retention.max-age]
    #[arg(long, value_name = "DUR", value_parser = humantime::parse_duration)]
    older_than: Option<Duration>,
    /// Keep the newest N of each lineage [default: rollback.retention.keep-last]
    #[arg(long, value_name = "N")]
    keep_last: Option<u32>,
    /// Keep unneeded content younger than DUR [default: 1m]
    #[arg(long, value_name = "DUR", value_parser = humantime::parse_duration)]
    grace: Option<Duration>,
    /// Show what would be pruned, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// As automatic retention does it: by the configuration alone, size included
    #[arg(long, hide = true, conflicts_with_all = ["older_than", "keep_last", "grace", "dry_run"])]
    automatic: bool,
}

/// Delete the content of a checkpoint, and free its space.
///
/// Its children become children of its parent. Its row stays.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic checkpoint delete 3f9a12c4")]
pub(crate) struct Delete {
    /// The checkpoint: an id, or the end of one
    id: String,
    /// Even if an unfinished run or an undo needs it
    #[arg(long)]
    force: bool,
    /// Keep unneeded content younger than DUR [default: 1m]
    #[arg(long, value_name = "DUR", value_parser = humantime::parse_duration)]
    grace: Option<Duration>,
}

/// Remove all content that a path ever had from every checkpoint: a secret that leaked.
///
/// Git packs that checkpoints keep are rewritten without it, refs below refs/ic/ that lead to it are removed, and no
/// restore of git's state brings it back. The checkpoints stay. Other paths with the same content lose it too, and are
/// listed. The output also lists what a purge does not reach, with the command that shows it: the repository's own
/// objects, refs and reflogs, its remotes, the files themselves. ic does not know backups and copies of the store. A
/// purge cannot be undone; if it was killed, run it again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic checkpoint purge config/token.txt --yes")]
pub(crate) struct Purge {
    /// The path, relative to here
    path: PathBuf,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

/// Verify that all content of the checkpoints is there.
///
/// Exit 2 when content is missing or damaged: it is listed, with the checkpoints that need it. With --repair, lost
/// content is marked as lost, and exit 0: checkpoints without any content are removed, those that lack some files stay
/// without them, and content that the working tree still has is stored again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic checkpoint verify
  ic checkpoint verify --read-data --json | jq '.damaged[].object'
  ic checkpoint verify --repair         # mark what is lost, keep the rest")]
pub(crate) struct Verify {
    /// Read all content and check its hashes
    #[arg(long)]
    read_data: bool,
    /// Mark lost content as lost, so that the rest works again; reads all content
    #[arg(long)]
    repair: bool,
}

fn repair_store(session: &mut Session) -> Result<Exit> {
    let repaired = with_room(session, |_| {
        let kernel = session.kernel()?;
        let settings = session.checkpoint_settings(&kernel)?;
        repair::repair(&kernel, &settings)
    })?;
    session
        .output
        .record(&VerifyObjectsJson::repaired(&repaired), || render::checkpoint::repaired(&repaired))?;
    Ok(Exit::Done)
}

/// Does what gives space back; on a full disk, once more with the room that is kept for it.
fn with_room<T>(session: &Session, work: impl Fn(bool) -> Result<T>) -> Result<T> {
    let ledger = session.place()?.db;
    let done = match work(false) {
        Err(error) if error.code() == Code::DiskFull && reserve::release(&ledger) => work(true),
        done => done,
    };
    reserve::keep_again(&ledger);
    done
}

impl Prune {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        let pruned = with_room(session, |is_tight| self.prune(session, is_tight))?;
        warn(session, &pruned);
        session.output.record(&PruneJson::from(&pruned), || render::checkpoint::pruned(&pruned))?;
        Ok(Exit::Done)
    }

    fn prune(&self, session: &Session, is_tight: bool) -> Result<Pruned> {
        let kernel = session.kernel()?;
        let settings = session.checkpoint_settings(&kernel)?;
        let workspace = Workspace::here(&kernel, &settings)?;
        if self.automatic {
            return retention::sweep(&workspace, &settings.retention);
        }
        let mut policy = settings.retention.policy();
        policy.max_age = self.older_than.unwrap_or(policy.max_age);
        policy.keep_last =
            self.keep_last.map_or(policy.keep_last, |n| usize::try_from(n).unwrap_or(usize::MAX));
        let grace = self.grace.unwrap_or(GRACE);
        let request = Request { policy, grace, dry_run: self.dry_run, is_tight };
        retention::prune(&workspace, &request)
    }
}

impl Delete {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        let grace = self.grace.unwrap_or(GRACE);
        let pruned = with_room(session, |_| {
            let kernel = session.kernel()?;
            let settings = session.checkpoint_settings(&kernel)?;
            let workspace = Workspace::here(&kernel, &settings)?;
            retention::delete(&workspace, Which::Id(&self.id), self.force, grace)
        })?;
        warn(session, &pruned);
        session.output.record(&PruneJson::from(&pruned), || render::checkpoint::pruned(&pruned))?;
        Ok(Exit::Done)
    }
}

fn warn(session: &Session, pruned: &Pruned) {
    for warning in &pruned.warnings {
        session.output.warn(&warning.message);
    }
}

impl Purge {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        let kernel = session.kernel()?;
        let settings = session.checkpoint_settings(&kernel)?;
        if !self.yes {
            let text = format!(
                "This removes the content of {} from every checkpoint, for good, also where other paths have the same content.\n",
                self.path.display()
            );
            // What cannot be done at all is refused for its own reason: a yes would not help.
            purge::require_purgeable(&Workspace::here(&kernel, &settings)?, &self.path)?;
            session.require_somebody("A purge cannot be undone", "give --yes")?;
            if !Session::ask(&text, "Purge?")? {
                return Ok(Exit::No);
            }
        }
        let purged = purge::purge(&Workspace::here(&kernel, &settings)?, &self.path)?;
        session.output.record(&PurgeJson::from(&purged), || render::checkpoint::purged(&purged))?;
        Ok(Exit::Done)
    }
}

impl Verify {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        if self.repair {
            return repair_store(session);
        }
        let kernel = session.kernel()?;
        let settings = session.checkpoint_settings(&kernel)?;
        let verified = retention::verify(&Workspace::here(&kernel, &settings)?, self.read_data)?;
        session
            .output
            .record(&VerifyObjectsJson::from(&verified), || render::checkpoint::verified(&verified))?;
        Ok(if verified.damaged.is_empty() && verified.file.is_empty() { Exit::Done } else { Exit::Failure })
    }
}
