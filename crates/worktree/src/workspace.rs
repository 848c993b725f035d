//! The working tree that is worked in: its root, how it is captured, and which of its checkpoints is meant.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ic_base::{Code, Diagnosis, Result};
use ic_checkpoint::capture::{self, CaptureProgress, Limit, RuleOptions};
use ic_checkpoint::nested_work_trees::Places;
use ic_checkpoint::objects::Objects;
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_kernel::config::{Checkpointing, Config, Retention};
use ic_kernel::{Kernel, require_own_project};
use ic_ledger::{Ledger, OpenOptions, Snapshot};
use ic_phase::Run;

use crate::store_location;

/// How checkpoints are taken here: the configuration, and what the caller allows.
#[derive(Debug, Clone)]
pub struct CaptureSettings {
    /// What is captured and what is left out, as configured.
    pub checkpointing: Checkpointing,
    /// How long it is kept.
    pub retention: Retention,
    /// The application's own database, whose place is marked whenever a run moves.
    pub state: Option<ic_rewind::RewindTarget>,
    /// The home directory, which is no project.
    pub home: Option<PathBuf>,
    /// What coding agents write of themselves, outside of any project: an undo leaves it.
    pub records: Vec<PathBuf>,
    /// Whether `/` and the home directory may be captured as a project.
    pub allow_unsafe_root: bool,
    /// How long locks are waited for.
    pub busy_timeout: Duration,
    /// The workflow that what is captured along the way belongs to.
    pub workflow: Option<String>,
    /// When a capture ends before it is whole: its caller may be killed for taking too long.
    pub limit: Limit,
}

impl CaptureSettings {
    /// As a configuration says for the project with this root, whose content lies in `store`.
    pub fn of(config: Config, root: &Path, store: &Path, home: Option<PathBuf>, busy_timeout: Duration) -> Self {
        let setup = config.rewind.map(|rewind| rewind.setup(root, store));
        Self {
            state: setup.map(|setup| setup.target),
            checkpointing: config.checkpointing,
            retention: config.retention,
            home,
            records: Vec::new(),
            allow_unsafe_root: false,
            busy_timeout,
            workflow: None,
            limit: Limit::default(),
        }
    }

    /// The progress of a capture that begins now, with its limit.
    pub fn progress(&self) -> CaptureProgress {
        CaptureProgress { limit: self.limit.clone(), ..CaptureProgress::default() }
    }

    /// The same for a ledger: one that several machines share keeps nothing of this one's tree and rows.
    #[must_use]
    pub fn with(mut self, ledger: &Ledger) -> Self {
        if !ledger.is_of_one_host() {
            self.state = None;
            self.checkpointing.auto = false;
        }
        self
    }

    /// The same, with the tree captured along the way only if that is `wanted`, too.
    #[must_use]
    pub fn capturing(mut self, wanted: bool) -> Self {
        self.checkpointing.auto &= wanted;
        self
    }

    /// The same, for what a workflow of this name captures.
    #[must_use]
    pub fn of_workflow(mut self, name: &str) -> Self {
        self.workflow = Some(name.to_owned());
        self
    }
}

/// Something that went less well than it should have, and did not stop the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// A stable word that scripts match on.
    pub code: &'static str,
    /// The sentence for people; it may change between versions.
    pub message: String,
}

/// A root with its content, opened.
pub struct Workspace<'k> {
    /// The project with its ledger, its clock and the calling directory.
    pub kernel: &'k Kernel,
    /// How checkpoints are taken in it.
    pub settings: &'k CaptureSettings,
    /// The root of the working tree.
    pub root: PathBuf,
    /// The content of checkpoints.
    pub objects: Objects,
}

impl<'k> Workspace<'k> {
    /// Opens the content beside the ledger for the working tree of `root`. Errors: `not_on_server`.
    pub fn open(kernel: &'k Kernel, root: PathBuf, settings: &'k CaptureSettings) -> Result<Self> {
        kernel.ledger.require_one_host("Work with checkpoints")?;
        let options = OpenOptions { busy_timeout: settings.busy_timeout, ..OpenOptions::default() };
        let objects = store_location::open(kernel, options)?;
        // Before any comparison: each of them passes over other work trees, and has to know where they are.
        objects.set_places(Some(Arc::new(Places::of(&root))));
        Ok(Self { kernel, settings, root, objects })
    }

    /// The working tree in which the caller stands.
    pub fn here(kernel: &'k Kernel, settings: &'k CaptureSettings) -> Result<Self> {
        Self::open(kernel, kernel.project.root.clone(), settings)
    }

    /// The working tree of a run: the top of the git work tree that holds its project, else the project itself.
    ///
    /// Errors: `foreign_root` when this is a copy of that project's ledger.
    pub fn of_run(kernel: &'k Kernel, run: &Run, settings: &'k CaptureSettings) -> Result<Self> {
        require_own_project(kernel, run)?;
        Self::open(kernel, root_of(&run.project_dir), settings)
    }

    /// How its tree is captured.
    pub fn options(&self) -> capture::CaptureOptions {
        // The real path: captures leave out the store by it, also if the ledger was named through a link.
        let ledger = store_location::real(self.kernel.ledger.path());
        capture::CaptureOptions {
            rules: RuleOptions {
                include_ignored: self.settings.checkpointing.include_ignored.clone(),
                include_secrets: self.settings.checkpointing.include_secrets.clone(),
                force: std::collections::BTreeSet::new(),
                compare: false,
            },
            max_file_size: self.settings.checkpointing.max_file_size,
            max_files: self.settings.checkpointing.max_files,
            flush: self.settings.checkpointing.flush,
            touched: None,
            since: None,
            // The directory and not the store's file alone: caches, locks and logs are beside it.
            store: ledger.parent().unwrap_or(Path::new("/")).to_owned(),
            ledger,
        }
    }

    /// Whether git's state is part of checkpoints here.
    pub fn has_git(&self) -> bool {
        self.settings.checkpointing.include_git && ic_ledger::git_dirs(&self.root).is_some()
    }

    /// Errors: those of [`capture::check_root`], unless the settings allow such a root.
    pub fn check_root(&self) -> Result<()> {
        if self.settings.allow_unsafe_root {
            return Ok(());
        }
        capture::check_root(&self.root, self.settings.home.as_deref())
    }
}

/// The root of the working tree that holds a project's directory.
pub fn root_of(project_dir: &Path) -> PathBuf {
    ic_ledger::project_root(project_dir)
}

/// Which checkpoint is meant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Which<'a> {
    /// The one with this id, or with an id that ends so.
    Id(&'a str),
    /// The newest of this name in the root.
    Named(&'a str),
    /// The newest of the root that a restore did not make.
    #[default]
    Latest,
}

/// Finds a checkpoint. Errors: `checkpoint_not_found`, `no_checkpoint`, `ambiguous_id`, `invalid_reference`.
pub fn find(snapshot: &Snapshot<'_>, root: &Path, which: Which<'_>) -> Result<CheckpointRecord> {
    match which {
        Which::Id(text) => record::resolve(snapshot, text),
        Which::Named(name) => record::named(snapshot, root, name)?.ok_or_else(|| {
            Diagnosis::new(Code::CheckpointNotFound, format!("There is no checkpoint named {name:?} here."))
                .hint("see: ic checkpoint list")
                .detail("name", name)
        }),
        Which::Latest => record::newest_of_work(snapshot, root)?.ok_or_else(|| no_checkpoint(root)),
    }
}

/// The refusal where a working tree has no checkpoint.
pub fn no_checkpoint(root: &Path) -> Diagnosis {
    Diagnosis::new(Code::NoCheckpoint, format!("{} has no checkpoint yet.", root.display()))
        .hint("take one: ic checkpoint create")
}

/// Errors: `checkpoint_not_found` if its content may be gone.
pub fn require_kept(checkpoint: &CheckpointRecord) -> Result<()> {
    match checkpoint.pruned_at {
        None => Ok(()),
        Some(at) => Err(Diagnosis::new(
            Code::CheckpointNotFound,
            format!("Checkpoint {} was pruned on {at}: its content is gone.", checkpoint.id.short()),
        )
        .hint("see what is left: ic checkpoint list")
        .detail("checkpoint_id", checkpoint.id.as_str())),
    }
}
