//! What a person is asked on the terminal, and what happens where no person is.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ic_base::{Code, Diagnose, Diagnosis, Result};
use signal_hook::consts::SIGINT;
use signal_hook::{flag, low_level};

use super::Session;
use crate::format::Format;

/// What is asked before something is done that an undo of the record alone does not bring back.
pub(crate) struct Question<'a> {
    /// What it does, as the refusal begins where no person can be asked.
    pub(crate) does: &'a str,
    /// What only looks: a command, or the flag that makes it one; `None`: nothing does.
    pub(crate) look: Option<&'a str>,
    /// The question.
    pub(crate) asks: &'a str,
}

impl Session {
    /// Whether a person can be asked: a terminal on both sides, and text.
    pub(crate) fn can_ask(&self) -> bool {
        self.output.format == Format::Text && io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Whether it is to be done: by `--yes` (`yes`), else by the answer to `preview`; Enter is no. An empty preview has nothing to decide.
    ///
    /// The preview is made before anything else: what cannot be done at all is refused for its own reason, because a yes would not help.
    /// Errors: those of the preview; `confirmation_required` where no person can be asked, and the hint leads on.
    pub(crate) fn confirm(
        &self,
        yes: bool,
        question: &Question<'_>,
        preview: impl FnOnce() -> Result<String>,
    ) -> Result<bool> {
        if yes {
            return Ok(true);
        }
        let preview = preview()?;
        if !self.can_ask() {
            let look = question.look.map(|look| format!("look first: {look}; then: --yes"));
            return Err(Diagnosis::new(
                Code::ConfirmationRequired,
                format!("{}: it needs confirmation, but standard input is not a terminal.", question.does),
            )
            .hint(look.unwrap_or_else(|| "give --yes".to_owned())));
        }
        if preview.is_empty() {
            return Ok(true);
        }
        let answer = answer(&format!("{preview}{} [y/N]", question.asks))?;
        let is_yes = answer.is_some_and(|answer| matches!(answer.as_str(), "y" | "Y" | "yes"));
        if !is_yes {
            writeln!(anstream::stderr(), "Nothing was changed.").while_doing(asking)?;
        }
        Ok(is_yes)
    }

    /// Shows `text` and asks a question on the terminal; Enter is yes.
    pub(crate) fn ask_yes(text: &str, question: &str) -> Result<bool> {
        // A terminal that was closed says nothing, which is no yes.
        let answer = answer(&format!("{text}{question} [Y/n]"))?;
        Ok(answer.is_some_and(|answer| matches!(answer.as_str(), "" | "y" | "Y" | "yes")))
    }

    /// Lets a person choose one of the numbered lines of `text`; `None` for anything that is no such number.
    pub(crate) fn choose(text: &str, question: &str) -> Result<Option<usize>> {
        Ok(answer(&format!("{text}{question}"))?.and_then(|answer| answer.parse().ok()))
    }

    /// Lets a person pick one of these lines with the arrow keys; `begin` is marked first. `None`: none was picked.
    pub(crate) fn pick(question: &str, lines: &[String], begin: usize) -> Result<Option<usize>> {
        let theme = dialoguer::theme::ColorfulTheme::default();
        let select = dialoguer::Select::with_theme(&theme).with_prompt(question).items(lines).default(begin);
        let terminal = dialoguer::console::Term::stderr();
        // Ctrl-C ends the process, whose cursor is hidden by then.
        let pressed = Arc::new(AtomicBool::new(false));
        let heard = flag::register(SIGINT, pressed.clone()).while_doing(asking)?;
        let picked = select.interact_on_opt(&terminal);
        low_level::unregister(heard);
        if pressed.load(Ordering::SeqCst) {
            let _ = terminal.show_cursor();
            low_level::emulate_default_handler(SIGINT).while_doing(asking)?;
        }
        picked.map_err(|dialoguer::Error::IO(error)| error).while_doing(asking)
    }
}

/// What is answered to a prompt, without the blanks around it; `None`: the terminal was closed.
fn answer(prompt: &str) -> Result<Option<String>> {
    let mut answer = String::new();
    let mut terminal = anstream::stderr();
    let read = write!(terminal, "{prompt} ")
        .and_then(|()| terminal.flush())
        .and_then(|()| io::stdin().read_line(&mut answer))
        .while_doing(asking)?;
    Ok((read > 0).then(|| answer.trim().to_owned()))
}

fn asking() -> String {
    "asking on the terminal".to_owned()
}
