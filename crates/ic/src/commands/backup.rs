//! `ic backup`

use std::path::PathBuf;

use ic_worktree::backup::{self, BackupRequest};

use crate::commands::prelude::*;
use crate::text::path_text;
use crate::views::ledger::BackupJson;

/// Copy the ledger to a file, while others work with it.
///
/// The newest changes of a ledger stand in a log beside its file, so a copy of the file alone can lack them. This copy is whole as of
/// one moment, or is not made. It is a ledger: ic --db FILE reads it. To restore it, put it in the ledger's place while no command runs,
/// FILE.objects.db in the place of objects.db, and remove the -wal file beside each; the next command then says what is missing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic backup ~/backups/shop.db
  ic backup --replace --content ~/backups/shop.db    # with the content of checkpoints, beside it
  ic --db ~/backups/shop.db events verify")]
pub(crate) struct BackupArgs {
    /// The file to make
    file: PathBuf,
    /// Replace the file if it is there
    #[arg(long)]
    replace: bool,
    /// Copy the content of checkpoints as well, to FILE.objects.db
    #[arg(long)]
    content: bool,
}

impl BackupArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let to = session.directory.join(&self.file);
        let request = BackupRequest { to: &to, replaces: self.replace, with_content: self.content };
        let made = backup::make(&kernel, &request, session.options())?;
        session.output.record(&BackupJson::new(&kernel, &to, &made), || {
            let content = made.content.as_ref().map_or_else(String::new, |(path, _)| {
                format!("Copied the content of checkpoints to {}\n", path_text(path))
            });
            let events = match made.head.seq {
                0 => "no event".to_owned(),
                seq => format!("events 1 to {seq}"),
            };
            format!("Copied the ledger to {}: {events}\n{content}", path_text(&to))
        })?;
        Ok(ExitStatus::Done)
    }
}
