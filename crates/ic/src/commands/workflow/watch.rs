//! Shows a running workflow on the terminal: its steps, their output, what is undone. Without a terminal, only warnings are printed.

use std::io::{IsTerminal, Write};

use ic_effects::Compensation;
use ic_undo::compensation::Sink;
use ic_workflow::table::{StepRow, WorkflowStepState};
use ic_workflow::{WorkflowRunReport, WorkflowUi};
use ic_worktree::Warning;

use crate::session::CliSession;
use crate::text::{plain, style};
use crate::views;

/// Prints the progress of a workflow.
pub(crate) struct WorkflowWatch {
    shows: bool,
    warns: bool,
    can_ask: bool,
    /// Whether the output that was printed last ended its line.
    at_line_start: bool,
    /// Whether the last line names the effect that is being undone, and will be replaced.
    is_undoing: bool,
    warnings: Vec<Warning>,
    /// The step whose error was printed with the question about a rollback.
    told: Option<String>,
}

impl WorkflowWatch {
    pub(crate) fn new(session: &CliSession) -> Self {
        // Progress rewrites its line, which only a terminal can do; warnings also go to a pipe.
        let shows = session.shows_progress() && std::io::stderr().is_terminal();
        let (warns, can_ask) = (session.shows_progress(), session.can_ask());
        Self { shows, warns, can_ask, at_line_start: true, is_undoing: false, warnings: Vec::new(), told: None }
    }

    /// The warnings that were given so far.
    pub(crate) fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The report without an error that the question has already shown.
    pub(crate) fn unsaid(&self, report: &WorkflowRunReport) -> WorkflowRunReport {
        let mut report = report.clone();
        let told = report.steps.iter_mut().filter(|step| Some(&step.id) == self.told.as_ref());
        told.filter_map(|step| step.row.as_mut()).for_each(|row| row.error = None);
        report
    }

    /// Prints a line of progress, if a terminal shows it.
    fn line(&mut self, text: &str) {
        if self.shows {
            self.say(text);
        }
    }

    /// Removes the line about the effect that is being undone.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.is_undoing) {
            let _ = write!(anstream::stderr(), "\r\u{1b}[2K");
        }
    }

    /// Prints a line, after ending an unfinished line of a step's output.
    fn say(&mut self, text: &str) {
        self.clear();
        let start = if self.at_line_start { "" } else { "\n" };
        // If the terminal was closed, the line is lost.
        let _ = writeln!(anstream::stderr(), "{start}{text}");
        self.at_line_start = true;
    }
}

impl Sink for WorkflowWatch {
    fn begins(&mut self, compensation: &Compensation) {
        if self.shows {
            self.clear();
            let start = if self.at_line_start { "" } else { "\n" };
            let _ = write!(
                anstream::stderr(),
                "{start}{}",
                views::compensation::compensation_report::begins(compensation).trim_end()
            );
            // The line has no end, and is cleared before the next one. So what follows starts at its beginning.
            (self.at_line_start, self.is_undoing) = (true, true);
        }
    }

    fn ended(&mut self, compensation: &Compensation) {
        // The report names each effect. If it goes to this terminal too, a line here would repeat it.
        if std::io::stdout().is_terminal() {
            self.clear();
        } else {
            self.line(views::compensation::compensation_report::ended(compensation).trim_end());
        }
    }
}

impl WorkflowUi for WorkflowWatch {
    fn step_begins(&mut self, step: &str, attempt: i64, at: usize, of: usize) {
        let again = if attempt > 1 { format!(" (attempt {attempt})") } else { String::new() };
        let (on, off) = (style::STRONG.render(), style::STRONG.render_reset());
        self.line(&format!("{on}▸ [{at}/{of}] {}{off}{again}", plain(step)));
    }

    fn output(&mut self, _: &str, bytes: &[u8]) {
        if !self.shows {
            return;
        }
        let (dim, reset) = (style::DIM.render(), style::DIM.render_reset());
        let mut shown = String::new();
        // Output comes in pieces, which may end within a line: the bar stands only where a line really begins.
        for piece in String::from_utf8_lossy(bytes).split_inclusive('\n') {
            if self.at_line_start {
                shown.push_str(&format!("  {dim}│{reset} "));
            }
            let (line, end) = piece.strip_suffix('\n').map_or((piece, ""), |line| (line, "\n"));
            shown.push_str(&plain(line));
            shown.push_str(end);
            self.at_line_start = !end.is_empty();
        }
        let _ = anstream::stderr().write_all(shown.as_bytes());
    }

    fn step_ended(&mut self, row: &StepRow) {
        let (colour, mark) = match row.state {
            WorkflowStepState::Succeeded => (style::GOOD, "✓"),
            // It has ended and will be tried again.
            WorkflowStepState::Running => (style::WARN, "↻"),
            _ => (style::BAD, "✗"),
        };
        let took = row.duration_ms.map(views::workflow::took).unwrap_or_default();
        let (on, off) = (colour.render(), colour.render_reset());
        self.line(&format!("{on}{mark} {}{off}  {took}", plain(&row.step)));
    }

    fn warn(&mut self, warning: &Warning) {
        if self.warns {
            let (on, off) = (style::WARN.render(), style::WARN.render_reset());
            self.say(&format!("{on}warning{off}: {}", plain(&warning.message)));
        }
        // Warnings are kept in text, too: the record that is printed at the end is made of all of them.
        self.warnings.push(warning.clone());
    }

    fn restoring(&mut self, what: &str) {
        self.line(&format!("  restoring the tree ({what})"));
    }

    fn ask_rollback(&mut self, step: &str, error: &str) -> Option<bool> {
        if !self.can_ask {
            return None;
        }
        self.line("");
        self.told = Some(step.to_owned());
        let text = format!("{}: {}\n", plain(step), plain(error));
        // A terminal that fails gives no answer, and the workflow then only stops.
        CliSession::ask_yes(&text, "Step failed. Rollback?").ok()
    }
}
