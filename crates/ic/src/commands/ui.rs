//! `ic ui`

use crate::commands::prelude::*;

/// Serve a page to look at runs in a browser, and to undo and redo there.
///
/// It shows each run as a timeline, what changed at each point, and the plan of an undo before it is done. It answers
/// on 127.0.0.1 alone, and only to who has the key in the address that it prints: keep that address to yourself. Ctrl-C
/// ends it. An undo that is under way then stops, and so does a command that is undoing an effect; ic rollback
/// resume finishes it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic ui                       # then open the address that it prints
  ic ui --open
  ic ui --read-only --port 4000
  ic ui --json | jq -r .url

docs/UI.md shows the pages.")]
pub(crate) struct UiArgs {
    /// The port; 0: any that is free [default: 0]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Open it in the browser of this desktop
    #[arg(long)]
    open: bool,
    /// Let nothing be changed from the page
    #[arg(long)]
    read_only: bool,
}

#[cfg(not(feature = "ui"))]
impl UiArgs {
    #[allow(clippy::unused_self, reason = "verbs share one shape")]
    pub(crate) fn run(&self, _: &mut CliSession) -> Result<ExitStatus> {
        let _ = (self.port, self.open, self.read_only);
        Err(Diagnosis::new(Code::Usage, "This build of ic has no page.")
            .hint("build it with the feature ui, which is on by default; without a browser: ic log"))
    }
}

#[cfg(feature = "ui")]
mod page {
    use std::fs;
    use std::io::Write;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};
    use std::sync::Arc;

    use ic_base::Diagnose;
    use ic_kernel::Kernel;
    use ic_ledger::{OpenOptions, Snapshot};
    use ic_ops::status::UnfinishedWork;
    use ic_phase::Run;
    use ic_ui::{ListenAddress, ServerOptions, ShownProject};
    use ic_worktree::CaptureSettings;

    use super::UiArgs;
    use crate::commands::prelude::*;
    use crate::session::Opening;
    use crate::signals;
    use crate::views::ui::UiJson;

    impl UiArgs {
        pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
            // Every request opens the ledger; kept connections make that cheap.
            ic_ledger::keep_connections();
            let opening = session.opening()?;
            let interrupted = signals::interrupted()?;
            // On a server an undo would be refused, so the page does not offer it.
            let read_only = self.read_only || !opening.kernel()?.ledger.is_of_one_host();
            let options = ServerOptions { port: self.port.unwrap_or(0), read_only, interrupted };
            let (place, open) = (opening.store().to_owned(), self.open);
            // `opener` is declared here, so that the file stays until the server ends: its drop removes it.
            let mut opener = None;
            ic_ui::serve(Arc::new(Here(opening)), options, |address| {
                if open {
                    opener = Some(Opener::open(&place, address)?);
                }
                let record = UiJson::new(&address.url, address.port, read_only);
                session.output.record(&record, || views::ui::served(&address.url, read_only)).map(drop)
            })?;
            Ok(ExitStatus::Done)
        }
    }

    /// This project, opened anew for each request.
    struct Here(Opening);

    impl ShownProject for Here {
        fn kernel(&self) -> Result<Kernel> {
            self.0.kernel()
        }

        fn settings(&self, kernel: &Kernel, project_dir: &Path) -> Result<CaptureSettings> {
            self.0.settings_of_project(kernel, project_dir)
        }

        fn options(&self) -> OpenOptions {
            self.0.options()
        }

        fn unfinished_workflow(&self, snapshot: &Snapshot<'_>, run: &Run) -> Result<Option<UnfinishedWork>> {
            ic_workflow::unfinished(snapshot, run)
        }
    }

    /// A file of the user's own that leads a browser to the page. The address has a key, and a command line can be read by every user of
    /// the machine.
    struct Opener(PathBuf);

    impl Opener {
        fn open(store: &Path, address: &ListenAddress) -> Result<Self> {
            // The name has the port, because several pages of one ledger may be served.
            let path = store.join(format!("ui-{}.html", address.port));
            let doing = || format!("writing {}", path.display());
            // The key in the file of a page that was killed opens nothing any more.
            let _ = fs::remove_file(&path);
            let mut file = ic_ledger::private::create_new(&path).while_doing(doing)?;
            let page = format!(
                "<!doctype html><meta charset=\"utf-8\"><title>ic</title><meta http-equiv=\"refresh\" content=\"0; url={0}\"><a href=\"{0}\">Open the page</a>\n",
                address.url
            );
            file.write_all(page.as_bytes()).while_doing(doing)?;
            let opener = Self(path);
            let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
            let started = Command::new(program)
                .arg(&opener.0)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
            started.map(|_| opener).map_err(|error| {
                Diagnosis::new(Code::Io, format!("{program} could not be started: {error}."))
                    .hint("leave --open out, and open the address that ic ui prints")
                    .caused_by(error)
            })
        }
    }

    impl Drop for Opener {
        fn drop(&mut self) {
            // If it stays, it leads nowhere once the page has ended.
            let _ = fs::remove_file(&self.0);
        }
    }
}
