//! Asks a person on the terminal, and refuses where there is none.

use std::io::{self, IsTerminal, Write};

use ic_base::{Code, Diagnose, Diagnosis, Result};
use signal_hook::consts::SIGINT;
use signal_hook::low_level;

use super::CliSession;
use crate::format::OutputFormat;
use crate::signals;

/// A question before something that an undo of the record alone would not restore.
pub(crate) struct Question<'a> {
    /// What the command does: the beginning of the refusal where no person can be asked.
    pub(crate) does: &'a str,
    /// The command, or the flag, that only shows the plan; `None` if there is none.
    pub(crate) look: Option<&'a str>,
    /// The question that follows the preview, without `[y/N]`.
    pub(crate) asks: &'a str,
}

impl CliSession {
    /// Whether a person can be asked: the form is text, and standard input and standard error are terminals.
    pub(crate) fn can_ask(&self) -> bool {
        // Standard output may be a file: questions are written on standard error.
        self.output.format == OutputFormat::Text && io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Whether to continue: by `--yes` (`yes`), else by the answer to `preview`; Enter is no. An empty preview needs no decision.
    ///
    /// The preview is made first: what cannot be done at all is refused for its own reason, because a yes would not help. Errors: those of
    /// the preview; `confirmation_required` if no person can be asked, with a hint how to continue.
    pub(crate) fn confirm(
        &self,
        yes: bool,
        question: &Question<'_>,
        preview: impl FnOnce() -> Result<String>,
    ) -> Result<bool> {
        // No preview is made: the real call makes its own plan, and refuses what cannot be done.
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
        // A closed terminal gives no answer, which is no yes.
        let answer = answer(&format!("{text}{question} [Y/n]"))?;
        Ok(answer.is_some_and(|answer| matches!(answer.as_str(), "" | "y" | "Y" | "yes")))
    }

    /// Lets a person choose one of the numbered lines of `text`; `None` for anything that is no such number.
    pub(crate) fn choose(text: &str, question: &str) -> Result<Option<usize>> {
        Ok(answer(&format!("{text}{question}"))?.and_then(|answer| answer.parse().ok()))
    }

    /// Shows `text` and asks for one of these letters on the terminal, until one is typed; `None` if the terminal was
    /// closed. A small letter may also be typed as a capital, unless that is another answer.
    pub(crate) fn letter(text: &str, question: &str, letters: &str) -> Result<Option<char>> {
        let mut shown = format!("{text}{question}");
        while let Some(answer) = answer(&shown)? {
            let mut typed = answer.chars();
            // An answer is exactly one character: a word is not an answer.
            let first = typed.next().filter(|_| typed.next().is_none());
            let meant = first.map(|letter| if letters.contains(letter) { letter } else { letter.to_ascii_lowercase() });
            if let Some(letter) = meant.filter(|letter| letters.contains(*letter)) {
                return Ok(Some(letter));
            }
            // What was asked about is on the screen already.
            question.clone_into(&mut shown);
        }
        Ok(None)
    }

    /// Lets a person pick one of these lines with the arrow keys; `begin` is marked first. `None`: none was picked.
    pub(crate) fn pick(question: &str, lines: &[String], begin: usize) -> Result<Option<usize>> {
        let theme = dialoguer::theme::ColorfulTheme::default();
        let select = dialoguer::Select::with_theme(&theme).with_prompt(question).items(lines).default(begin);
        let terminal = dialoguer::console::Term::stderr();
        // The picker hides the cursor. Ctrl-C is caught, so that the cursor is shown again before the process ends.
        let (picked, is_pressed) = signals::caught(|| select.interact_on_opt(&terminal))?;
        if is_pressed {
            let _ = terminal.show_cursor();
            low_level::emulate_default_handler(SIGINT).while_doing(asking)?;
        }
        picked.map_err(|dialoguer::Error::IO(error)| error).while_doing(asking)
    }
}

/// Prints a prompt and reads the answer, without blanks around it; `None` if the terminal was closed.
fn answer(prompt: &str) -> Result<Option<String>> {
    let mut answer = String::new();
    let mut terminal = anstream::stderr();
    let read = write!(terminal, "{prompt} ")
        .and_then(|()| terminal.flush())
        .and_then(|()| io::stdin().read_line(&mut answer))
        .while_doing(asking)?;
    // No byte, not even a line break: the terminal was closed. Enter alone gives one.
    Ok((read > 0).then(|| answer.trim().to_owned()))
}

fn asking() -> String {
    "asking on the terminal".to_owned()
}
