//! The undo of one entry of the journal, by its id: `ic undo ID` and `ic redo ID`.

use ic_kernel::journal::Force;
use ic_undo::JournalEntry;

use super::rewind::undo_rewind;
use super::rollback::RollbackRedo;
use crate::commands::checkpoint::RestoreFlags;
use crate::commands::prelude::*;

/// How an entry is to be undone.
pub(crate) struct EntryUndo<'a> {
    pub(crate) reason: Option<&'a str>,
    /// Whether the rest is undone although undone effects are not made again; `None` if the verb has no such flag.
    pub(crate) without_effects: Option<bool>,
    pub(crate) plan: &'a PlanFlags,
    pub(crate) force: Force,
    pub(crate) keep_theirs: bool,
}

impl EntryUndo<'_> {
    /// Carries it out, or says what it would do. Errors: `usage` for a flag that means nothing for this kind of entry.
    pub(crate) fn run(&self, session: &mut CliSession, entry: &JournalEntry) -> Result<ExitStatus> {
        match entry {
            JournalEntry::Rollback(id) => {
                let explain = |error: Diagnosis| match error.code() {
                    // `ic undo ID` has no such flag, so its hint names the verb that has.
                    Code::EffectsUndone if self.without_effects.is_none() => {
                        error.hint(format!("everything else: ic redo {} --without-effects", id.short()))
                    }
                    _ => error,
                };
                self.of_rollback(id.as_str())?.run(session, explain)
            }
            JournalEntry::Restore(id) => self.of_restore()?.undo(session, Some(id)),
            JournalEntry::Rewind(id) => {
                let hash = ("--expect-plan", self.plan.expect_plan.is_some());
                refuse_all("a rewind", &[self.of_record(), self.of_files(), hash])?;
                undo_rewind(session, id, self.plan.dry_run, self.plan.yes)
            }
        }
    }

    /// The undo of the rollback that is named, by its id or its run. Errors: `usage`.
    pub(super) fn of_rollback(&self, reference: &str) -> Result<RollbackRedo<'_>> {
        refuse_all("a rollback", &[self.of_files()])?;
        Ok(RollbackRedo {
            id: reference.to_owned(),
            reason: self.reason,
            without_effects: self.without_effects.unwrap_or_default(),
            plan: self.plan,
        })
    }

    /// The undo of a restore. Errors: `usage`.
    pub(super) fn of_restore(&self) -> Result<RestoreFlags> {
        refuse_all("a restore", &[self.of_record()])?;
        Ok(RestoreFlags {
            plan: self.plan.clone(),
            force: self.force,
            keep_theirs: self.keep_theirs,
            ..RestoreFlags::default()
        })
    }

    /// The flags that mean something only where a record is changed.
    fn of_record(&self) -> (&'static str, bool) {
        if self.reason.is_some() {
            ("--reason", true)
        } else {
            ("--without-effects", self.without_effects == Some(true))
        }
    }

    /// The flags that mean something only where files are restored.
    fn of_files(&self) -> (&'static str, bool) {
        // One flag is enough: the first that was given is the error.
        if self.keep_theirs { ("--keep-theirs", true) } else { ("--force", self.force != Force::default()) }
    }
}

fn refuse_all(what: &str, flags: &[(&str, bool)]) -> Result<()> {
    let given = flags.iter().find(|(_, is_given)| *is_given);
    given.map_or(Ok(()), |(flag, _)| Err(without_meaning(flag, what)))
}

/// The error for a flag that means nothing for the entry that is named.
pub(crate) fn without_meaning(flag: &str, what: &str) -> Diagnosis {
    Diagnosis::new(Code::Usage, format!("{flag} means nothing for the undo of {what}."))
        .hint("leave it out; what there is to choose: ic redo --help")
}
