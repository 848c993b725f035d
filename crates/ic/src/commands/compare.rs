//! `ic compare`

use ic_checkpoint::diff::{self, TreeChange};
use ic_dispatch::dispatch::{self, DispatchFilter, TokenCounts};
use ic_dispatch::{Dispatch, code};
use ic_kernel::Kernel;
use ic_phase::run::{self, RunFilter};
use ic_worktree::Workspace;
use ic_worktree::forks::{self, Fork};

use crate::commands::prelude::*;
use crate::views::fork::{CompareJson, ComparedFork};

/// Compare the forks of this work tree: what each became, how its work ended, and its tokens.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic compare
  ic compare 1 3
  ic compare --json | jq -r '.[] | select(.status == \"completed\") | .name'
  git diff --no-index ../shop.forks/1 ../shop.forks/2    # two of them, line by line")]
pub(crate) struct CompareArgs {
    /// The forks: their names or directories [default: all]
    forks: Vec<String>,
}

impl CompareArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let meant = if self.forks.is_empty() {
            kernel.read(|snapshot| forks::all(snapshot, &kernel.project.root))?
        } else {
            self.forks.iter().map(|fork| forks::find(&kernel, fork)).collect::<Result<_>>()?
        };
        let compared: Vec<ComparedFork> =
            meant.into_iter().map(|fork| compare(session, fork)).collect::<Result<_>>()?;
        let records: Vec<CompareJson> = compared.iter().map(CompareJson::from).collect();
        session.output.list(&records, || views::fork::compared(&compared))
    }
}

fn compare(session: &mut CliSession, fork: Fork) -> Result<ComparedFork> {
    let root = fork.root.clone();
    session.within(&root, |session| {
        let kernel = session.kernel()?;
        let settings = session.checkpoint_settings(&kernel)?;
        let workspace = Workspace::here(&kernel, &settings)?;
        let now = workspace.record_look(None)?;
        let mut files: Vec<(Vec<u8>, TreeChange)> = Vec::new();
        diff::diff(&workspace.objects, Some(&fork.base.tree), Some(&now.tree), &mut |difference| {
            if !difference.is_of_directory() {
                files.extend(difference.change().map(|change| (difference.path.clone(), change)));
            }
            Ok(())
        })?;
        let (newest, tokens, commits) = work_of(&kernel, &fork)?;
        Ok(ComparedFork { fork, files, newest, tokens, commits })
    })
}

/// The newest work in a fork, and the tokens and commits of all.
fn work_of(kernel: &Kernel, fork: &Fork) -> Result<(Option<Dispatch>, TokenCounts, usize)> {
    const MOST: i64 = 1_000;
    kernel.read(|snapshot| {
        let (mut newest, mut tokens, mut commits): (Option<Dispatch>, _, _) = (None, TokenCounts::default(), 0);
        let filter = RunFilter { open: false, project: Some(&fork.root), limit: MOST, before: None };
        for run in run::list(snapshot, &filter)? {
            let filter = DispatchFilter { run_id: Some(&run.id), phase: None, status: None, limit: MOST };
            for work in dispatch::list(snapshot, &filter)? {
                tokens = tokens.plus(work.tokens);
                commits += code::commits_of(snapshot, &work.id)?.len();
                if newest.as_ref().is_none_or(|newest| newest.seq < work.seq) {
                    newest = Some(work);
                }
            }
        }
        Ok((newest, tokens, commits))
    })
}
