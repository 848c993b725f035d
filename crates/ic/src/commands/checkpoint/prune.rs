//! `ic checkpoint prune`

use std::time::Duration;

use ic_ledger::reserve;
use ic_worktree::Workspace;
use ic_worktree::retention::{self, GRACE, Pruned, RetentionRequest};

use crate::commands::prelude::*;
use crate::views::checkpoint::retention::PruneJson;

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
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// As automatic retention does it: by the configuration alone, size included
    #[arg(long, hide = true, conflicts_with_all = ["older_than", "keep_last", "grace", "dry_run"])]
    automatic: bool,
}

impl Prune {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let pruned = with_room(session, |is_tight| self.prune(session, is_tight))?;
        report(session, &pruned)
    }

    fn prune(&self, session: &CliSession, is_tight: bool) -> Result<Pruned> {
        let kernel = session.kernel_to_change(None)?;
        let settings = session.checkpoint_settings(&kernel)?;
        let workspace = Workspace::here(&kernel, &settings)?;
        if self.automatic {
            return retention::sweep(&workspace, &settings.retention);
        }
        let mut policy = settings.retention.policy();
        policy.max_age = self.older_than.unwrap_or(policy.max_age);
        policy.keep_last = self.keep_last.map_or(policy.keep_last, |n| usize::try_from(n).unwrap_or(usize::MAX));
        let grace = self.grace.unwrap_or(GRACE);
        let request = RetentionRequest { policy, grace, dry_run: self.dry_run, is_tight };
        retention::prune(&workspace, &request)
    }
}

/// Prints what was removed, and the warnings.
pub(super) fn report(session: &mut CliSession, pruned: &Pruned) -> Result<ExitStatus> {
    session.output.warn_all(&pruned.warnings);
    session.output.record(&PruneJson::from(pruned), || views::checkpoint::retention::pruned(pruned))
}

/// Runs `work`, which frees space. If the disk is full, runs it again with the space that is reserved for this.
pub(super) fn with_room<T>(session: &CliSession, work: impl Fn(bool) -> Result<T>) -> Result<T> {
    let ledger = session.place()?.db;
    let done = match work(false) {
        // It is tried again only once: on a disk that is still full, the second error is the answer. All of `work` runs
        // again, including the opening of the ledger.
        Err(error) if error.code() == Code::DiskFull && reserve::release(&ledger) => work(true),
        done => done,
    };
    // After a failure, too: the next prune on a full disk needs the room.
    reserve::keep_again(&ledger);
    done
}
