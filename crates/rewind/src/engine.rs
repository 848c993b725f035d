//! The engine: what would be removed, what is removed, and what is restored.

use ic_base::{Diagnosis, Result};

use crate::archive::{self, Archive, ArchiveManifest, ArchiveState, SCHEMA};
use crate::config::RewindTarget;
use crate::lineage::Lineage;
use crate::order;
use crate::plan::{CutBound, CutPlan, PlanLine};
use crate::references;
use crate::schema::Catalog;
use crate::session::DatabaseSession;
use crate::value::RowCounts;

mod audit;
mod cut;
mod moment;
mod state_mark;
mod tasks;
mod undo;

use moment::Moment;
pub use moment::{EngineOptions, RelationalRollbackEngine, Rewind, RollbackResult, RollbackSnapshot};
pub use state_mark::{ScopeMark, StateMark};
pub use tasks::{AnchorTask, TaskRef};
pub use undo::{UndoReport, UndoResult};

/// The largest database, in bytes, in which a preview looks for rows that would lose their parents. That takes a look at every row.
const LOOKED_THROUGH: i64 = 16 * 1024 * 1024;

impl RelationalRollbackEngine {
    /// Opens the state database. Nothing is written to it.
    ///
    /// Errors: `invalid_config` when it is not there, or has not what the target names; `foreign_database`, `newer_schema`,
    /// `corrupt`, `busy`, `permission_denied`.
    pub fn open(target: &RewindTarget, options: EngineOptions) -> Result<Self> {
        let session = DatabaseSession::open(&target.database, options.busy_timeout)?;
        let engine = Self { session, target: target.clone(), options };
        // This only refuses what does not fit: each operation reads the schema again, because the application may change it.
        engine.session.reading(|| engine.plan())?;
        Ok(engine)
    }

    /// The database and the tables that it rewinds.
    pub fn target(&self) -> &RewindTarget {
        &self.target
    }

    /// All tasks to which can be rewound, oldest first.
    pub fn read_all_tasks(&self) -> Result<Vec<AnchorTask>> {
        self.session.reading(|| {
            let (_, plan) = self.plan()?;
            tasks::all(&self.session, &plan)
        })
    }

    /// The newest tasks whose order can be compared, newest first: at most `limit`, and with `scope` only those whose first scope column
    /// has this value. Whether the present rows allow a rewind is told by [`get_snapshot`](Self::get_snapshot).
    ///
    /// Errors: `invalid_value` for a scope where the tasks have none.
    pub fn read_newest_tasks(&self, scope: Option<&str>, limit: u32) -> Result<Vec<AnchorTask>> {
        self.session.reading(|| {
            let (_, plan) = self.plan()?;
            tasks::newest(&self.session, &plan, scope, limit)
        })
    }

    /// The task with this id. Errors: [`UnknownTaskError`](crate::error::UnknownTaskError) as `unknown_task`; `ambiguous_id` when several scopes have it.
    pub fn task(&self, task: impl Into<TaskRef>) -> Result<AnchorTask> {
        let task = task.into();
        self.session.reading(|| {
            let (_, plan) = self.plan()?;
            tasks::find(&self.session, &plan, &task)
        })
    }

    /// What [`rollback_to_task`](Self::rollback_to_task) would remove now. Nothing is changed.
    ///
    /// Errors: as for [`task`](Self::task); `row_conflict`, which names rows, when rows cannot be compared with the task's order, or would
    /// stay and refer to removed rows (in a database of at most 16 MiB).
    pub fn get_snapshot(&self, task: impl Into<TaskRef>) -> Result<RollbackSnapshot> {
        let task = task.into();
        self.preview(false, |plan| self.moment_of_task(plan, &task))
    }

    /// [`get_snapshot`](Self::get_snapshot) of a database of any size: finds every row that would stay and refer to a removed one.
    pub fn get_whole_snapshot(&self, task: impl Into<TaskRef>) -> Result<RollbackSnapshot> {
        let task = task.into();
        self.preview(true, |plan| self.moment_of_task(plan, &task))
    }

    /// Rewinds the tables to a task: rows with an order above the task's are copied into `archive` and deleted, in one transaction. Rows
    /// with the same order stay.
    ///
    /// Errors: as for [`get_snapshot`](Self::get_snapshot), and before anything is begun when there is no such task; `row_conflict` when a
    /// row that stays refers to a removed one, or the archive was used before; `busy`, `disk_full`, `permission_denied`. After any error
    /// the database is unchanged.
    pub fn rollback_to_task(
        &mut self,
        task: impl Into<TaskRef>,
        rewind: &Rewind<'_>,
        archive: &mut Archive,
    ) -> Result<RollbackResult> {
        let task = task.into();
        // An unknown task is refused here, without a transaction.
        tasks::find(&self.session, &self.plan()?.1, &task)?;
        self.rewind(rewind, archive, &|plan| self.moment_of_task(plan, &task))
    }

    /// Whether the rows of `archive` are gone from the database. Errors: `path_not_found`, `corrupt`; `row_conflict` when
    /// some are gone and some are not.
    pub fn archive_state(&self, archive: &Archive) -> Result<ArchiveState> {
        self.beside(archive, |session, catalog, manifest| {
            let plan = CutPlan::new(&self.target, catalog)?;
            archive::is_applied(session, &plan, catalog, manifest)
        })
    }

    /// Whether every row of `archive` is in the database with the same values.
    fn is_all_there(&self, archive: &Archive) -> Result<bool> {
        self.beside(archive, |session, catalog, manifest| {
            archive::missing(session, catalog, manifest).map(|missing| missing == 0)
        })
    }

    /// Reads an archive and the database together.
    fn beside<T, E: From<Diagnosis>>(
        &self,
        archive: &Archive,
        look: impl FnOnce(&DatabaseSession, &Catalog, &ArchiveManifest) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        let manifest = archive.manifest()?;
        // A connection of its own, so that the archive is attached only while it is read.
        let session = DatabaseSession::open(&self.target.database, self.options.busy_timeout)?;
        session.attach(archive.path(), SCHEMA)?;
        session.reading(|| look(&session, &Catalog::read(&session)?, &manifest))
    }

    fn plan(&self) -> Result<(Catalog, CutPlan)> {
        let catalog = Catalog::read(&self.session)?;
        let plan = CutPlan::new(&self.target, &catalog)?;
        Ok((catalog, plan))
    }

    fn is_large(&self) -> Result<bool> {
        let pages = |what: &str| {
            let sql = format!("SELECT {what} FROM pragma_{what}");
            self.session.query_one(&sql, &[], |row| row.get::<_, i64>(0))
        };
        Ok(pages("page_count")?.saturating_mul(pages("page_size")?) > LOOKED_THROUGH)
    }

    fn moment_of_task(&self, plan: &CutPlan, task: &TaskRef) -> Result<Moment> {
        let found = tasks::find(&self.session, plan, task)?;
        order::check_target(&found.task_id, &plan.anchor.order, &found.created_at)?;
        let scope = found.scope.into_iter().map(|(_, value)| value).collect();
        let mut line = PlanLine { bound: CutBound::After(found.created_at), scope, rows: None };
        // Where ids sort in the order of the checkpoints, comparing them is enough. Else the rows are listed one by one.
        if let Some(lineage) = Lineage::of(&self.session, &self.target, &line.scope)?
            && !lineage.sorts_by_id()
        {
            line.rows = Some(lineage.after(&found.task_id)?);
        }
        Ok(Moment { task_id: Some(found.task_id), line })
    }

    /// `of_any_size`: looks for rows that would lose their parents even in a large database.
    fn preview(&self, of_any_size: bool, moment: impl FnOnce(&CutPlan) -> Result<Moment>) -> Result<RollbackSnapshot> {
        self.session.reading(|| {
            let (catalog, plan) = self.plan()?;
            let moment = moment(&plan)?;
            let mut counts = RowCounts::default();
            let mut shrinking = Vec::new();
            for cut in &plan.cuts {
                // It is prepared and not run: if this program lacks what the application's schema needs, the preview is refused already.
                self.session.can_run(&cut::delete_sql(cut, &plan.doomed(cut, &moment.line)))?;
                let rows = order::count(&self.session, &plan, cut, &moment.line)?;
                counts.push(&cut.info.name, rows);
                // A table that loses no row leaves no row without its parent.
                if rows > 0 {
                    shrinking.push(cut);
                }
            }
            let is_large = self.is_large()?;
            if of_any_size || !is_large {
                let going = (&shrinking[..], &moment.line);
                references::refuse_survivors(&self.session, &plan, &catalog, going, is_large)?;
            }
            Ok(RollbackSnapshot {
                snapshot_created_at: moment.order(),
                task_id: moment.task_id,
                affected_row_counts: counts,
            })
        })
    }
}
