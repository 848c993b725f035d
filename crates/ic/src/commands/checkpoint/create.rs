//! `ic checkpoint create`

use ic_checkpoint::capture::CaptureProgress;
use ic_worktree::CreateRequest;

use crate::commands::prelude::*;
use crate::views::checkpoint::CheckpointJson;
use crate::{background_sweep, progress};

/// Capture the working tree, and print the checkpoint's id.
///
/// The whole tree is captured, whatever changed it; ignored files and likely secrets are left out. Exit 4 when a file
/// could not be read: the checkpoint holds the rest, and names that file. Nested repositories and submodules are
/// captured without their `.git`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic checkpoint create --name before-refactor
  before=$(ic checkpoint create)
  ic checkpoint create --run @ --message 'tests pass'
  ic checkpoint create --auto --conversation \"$CHAT\"   # in a hook
  ic checkpoint create --auto --settled   # the work ended; what follows is by others")]
pub(crate) struct CheckpointCreateArgs {
    /// The run that it belongs to
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// A name to find it by
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Why it is taken; --auto cuts it instead of refusing it
    #[arg(long, value_name = "TEXT")]
    message: Option<String>,
    /// Its conversation; --auto cuts it instead of refusing it
    #[arg(long, value_name = "NAME")]
    conversation: Option<String>,
    /// Let retention prune it when it is old
    #[arg(long)]
    auto: bool,
    /// Mark the end of work: later changes are others'
    #[arg(long)]
    settled: bool,
    /// Capture / or the home directory anyway
    #[arg(long)]
    allow_unsafe_root: bool,
    #[command(flatten)]
    door: ForceFlags,
}

impl CheckpointCreateArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let name = input::optional_label("--name", self.name.as_deref())?;
        // A hook passes on texts of others, and no person sees its refusal: a checkpoint is worth more than the exact text.
        let (message, conversation) = if self.auto {
            (input::cut_text(self.message.as_deref()), input::cut_label(self.conversation.as_deref()))
        } else {
            (
                input::optional_text("--message", self.message.as_deref())?.map(str::to_owned),
                input::optional_label("--conversation", self.conversation.as_deref())?,
            )
        };
        let request = CreateRequest {
            run: self.run.as_deref(),
            name: name.as_deref(),
            message: message.as_deref(),
            conversation: conversation.as_deref(),
            is_auto: self.auto,
            is_settled: self.settled,
        };
        let kernel = session.kernel_for(self.door.as_deref())?;
        let mut settings = session.checkpoint_settings(&kernel)?;
        // Only the flag allows it: no configuration can allow it for every call.
        settings.allow_unsafe_root = self.allow_unsafe_root;
        let watch = CaptureProgress::default();
        let created = progress::shown(
            session.shows_progress(),
            || views::checkpoint::capturing(&watch),
            || ic_worktree::create(&kernel, &settings, &request, &watch),
        )?;
        background_sweep::sweep(session, &kernel, Some(&settings), &created.checkpoint.root);
        session.output.warn_beside_value(&created.warnings);
        let unreadable: Vec<_> = created.manifest.skipped.iter().filter(|s| s.reason == "unreadable").collect();
        for skipped in &unreadable {
            session.output.warn(&format!("{} could not be read", String::from_utf8_lossy(&skipped.path.0)));
        }
        let record = CheckpointJson::whole(&created.checkpoint, Some(&created.manifest), &created.warnings);
        session.output.scalar(created.checkpoint.id.as_str(), &record)?;
        // Other files are left out by a rule, which is no failure; one that cannot be read was meant to be captured.
        Ok(if unreadable.is_empty() { ExitStatus::Done } else { ExitStatus::Partly })
    }
}
