//! Removing rows: the rewind itself.

use ic_base::{Code, Diagnosis, Result};

use super::audit;
use super::moment::{Moment, RelationalRollbackEngine, Rewind, RollbackResult, count_rows, unexpected};
use crate::archive::{self, Archive, ArchiveManifest, ArchiveState, SCHEMA};
use crate::order;
use crate::plan::{COMPLETED, CutPlan, CutTable, PlanLine, SqlCondition};
use crate::references;
use crate::session::quote;
use crate::value::RowCounts;

impl RelationalRollbackEngine {
    pub(super) fn rewind(
        &self,
        rewind: &Rewind<'_>,
        archive: &Archive,
        moment: &dyn Fn(&CutPlan) -> Result<Moment>,
    ) -> Result<RollbackResult> {
        self.refuse_used_archive(archive, rewind)?;
        let result = self.session.writing(|| self.take_away(rewind, archive, moment));
        // This comes after the transaction, because SQLite detaches nothing within one. The next rewind of this engine has another archive.
        self.session.detach(SCHEMA);
        if result.is_err() {
            self.discard_if_unused(archive, rewind);
        }
        result
    }

    /// The statements of a rewind, within its transaction.
    fn take_away(
        &self,
        rewind: &Rewind<'_>,
        archive: &Archive,
        moment: &dyn Fn(&CutPlan) -> Result<Moment>,
    ) -> Result<RollbackResult> {
        //   application   BEGIN IMMEDIATE ─────────────────────── DELETE ── audit ── COMMIT
        //   archive                        copy ── sync ── rename
        // A kill before the rename leaves only a file with another name. After a kill before the commit, SQLite rolls back, and the
        // archive is unused. After the commit the archive is whole, and the journal learns from it that the rows are gone.
        let session = &self.session;
        let (catalog, plan) = self.plan()?;
        // Read again inside of the transaction: the application may have changed schema or rows since the preview.
        let moment = moment(&plan)?;
        // Every row is looked at. The count of a preview leaves this out where its numbers show that all of them are sound.
        for cut in &plan.cuts {
            order::check(session, cut, &moment.line)?;
        }
        let before = self.row_counts_if_triggers_fire(&plan)?;
        // This comes before the deletes: afterwards the next rowid could be that of a deleted row, which an undo needs.
        let free_rowid = plan.audit.as_ref().map(|a| audit::free_rowid(session, a)).transpose()?;
        let scope = plan.anchor.scope.iter().cloned().zip(moment.line.scope.iter().cloned());
        let mut manifest = ArchiveManifest {
            rewind_id: rewind.id.to_owned(),
            task_id: moment.task_id.clone(),
            order: moment.order(),
            scope: scope.collect(),
            created_at: rewind.now.millis(),
            tables: Vec::new(),
        };
        let timeout = self.options.busy_timeout;
        archive::write(archive, session.path(), timeout, &plan, &moment.line, &mut manifest)?;
        // Deleted only after the archive is durable: from here on it is the only copy of these rows.
        let deleted = self.delete(&plan, &moment.line, &manifest)?;
        // A trigger may have inserted or deleted other rows of these tables, which are in no archive.
        // If no trigger fires, `before` is empty and nothing is counted.
        for ((table, rows), (_, gone)) in before.iter().zip(deleted.iter()) {
            if count_rows(session, table)? != rows - gone {
                return Err(unexpected(table, "Triggers changed the number of rows"));
            }
        }
        // Checked within the transaction and after the deletes: a row that would lose its parent rolls all of it back.
        references::check_survivors(session, &plan, &catalog, archive, &manifest)?;
        let result = RollbackResult {
            rewind_id: rewind.id.to_owned(),
            task_id: moment.task_id.clone(),
            snapshot_created_at: moment.order(),
            deleted_row_counts: deleted,
        };
        // It is written in the same transaction: the application finds this row exactly if the rows are gone.
        if let Some(audit) = &plan.audit {
            let entry = audit::AuditEntry {
                event: COMPLETED,
                rewind_id: rewind.id,
                task_id: moment.task_id.as_deref(),
                order: &moment.order(),
                now: rewind.now,
                rowid: free_rowid.flatten(),
            };
            audit::write(session, audit, &entry, &result)?;
        }
        Ok(result)
    }

    /// Deletes the rows that were archived. Fails unless the number for each table is the same.
    fn delete(&self, plan: &CutPlan, line: &PlanLine, manifest: &ArchiveManifest) -> Result<RowCounts> {
        let mut counts = RowCounts::default();
        for (cut, archived) in plan.cuts.iter().zip(&manifest.tables) {
            let doomed = plan.doomed(cut, line);
            let deleted = self.session.execute(&delete_sql(cut, &doomed), &doomed.params)?;
            if deleted != archived.rows {
                let what = format!("{} rows were archived but {deleted} deleted", archived.rows);
                return Err(unexpected(&cut.info.name, &what));
            }
            counts.push(&cut.info.name, deleted);
        }
        Ok(counts)
    }

    /// The numbers of all rows, if triggers may fire: only they show what triggers did. Empty without triggers.
    fn row_counts_if_triggers_fire(&self, plan: &CutPlan) -> Result<RowCounts> {
        let mut counts = RowCounts::default();
        if plan.cuts.iter().any(|cut| cut.fires) {
            for cut in &plan.cuts {
                counts.push(&cut.info.name, count_rows(&self.session, &cut.info.name)?);
            }
        }
        Ok(counts)
    }

    /// Errors: `archive_in_use` when there is an archive already, unless it is this rewind's own that was not committed.
    fn refuse_used_archive(&self, archive: &Archive, rewind: &Rewind<'_>) -> Result<()> {
        if !archive.exists()? {
            return Ok(());
        }
        let manifest = archive.manifest()?;
        if manifest.rewind_id == rewind.id && self.archive_state(archive)? == ArchiveState::Unused {
            // It may be the only copy of rows whose values have changed since.
            return if self.is_all_there(archive)? { Ok(()) } else { archive.set_aside() };
        }
        Err(Diagnosis::new(
            Code::ArchiveInUse,
            format!("{} already is the archive of the rewind {}.", archive.path().display(), manifest.rewind_id),
        )
        .hint("give each rewind an archive of its own"))
    }

    /// Removes an archive after a failure, if all of its rows are still in the database. In doubt it stays.
    fn discard_if_unused(&self, archive: &Archive, rewind: &Rewind<'_>) {
        let is_own = archive.manifest().is_ok_and(|manifest| manifest.rewind_id == rewind.id);
        // Removed only if every row is certainly in the database: else the archive may be the only copy.
        if is_own
            && matches!(self.archive_state(archive), Ok(ArchiveState::Unused))
            && matches!(self.is_all_there(archive), Ok(true))
        {
            // If it stays, the next attempt of this rewind finds it unused and replaces it.
            let _ = archive.remove();
        }
    }
}

/// Deletes the rows that go.
pub(super) fn delete_sql(cut: &CutTable, doomed: &SqlCondition) -> String {
    format!("DELETE FROM main.{} AS c WHERE {}", quote(&cut.info.name), doomed.sql)
}
