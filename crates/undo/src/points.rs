//! Points: what a reference to one means, and where it lies.
//!
//! `created`, `phase:P`, `step:NAME` (or `step:NAME#2`), `dispatch:ID`, `prompt:ID`, `guard:ID`, `checkpoint:ID`. Without a prefix: the end
//! of an id, else the name of a step or of a checkpoint. `@` is the newest work of the place that is not undone, `@~2` two before it.

mod change_bounds;
mod change_reference;
mod entry_reference;
mod git_names;
mod idle_prompts;
mod list;
pub mod log;
mod newer_work;
mod other_places;
mod other_runs;
mod place_changes;
pub mod place_log;
mod place_works;
mod point_position;
mod point_reference;
mod prompt_changes;
mod undo_target;

pub use change_reference::{ChangeReference, require_work};
pub use entry_reference::{EntryReference, NamedWork, entry_meant, work_at};
pub use git_names::unless_of_git;
pub use ic_phase::run_reference::moved_from;
pub use idle_prompts::{has_changed, is_idle, is_of_idle};
pub use list::{ListedPoint, list, undone_in_part_by};
pub use newer_work::{NewerWork, beside};
pub use other_places::elsewhere;
pub use other_runs::{OtherRuns, others_open, prompts_outside};
pub use place_changes::{PlaceEntry, change_at};
pub use place_works::{newest_works, steps_back, work_back};
pub use point_position::{
    PointGoal, PointPosition, id_of_work, place_of, resolve, taken_back_by, thread_since, work_of,
};
pub use point_reference::{checkpoint_at, reference};
pub(crate) use undo_target::known;
pub use undo_target::{
    UndoTarget, checkpoint_meant, checkpoint_named, earlier, last, meant, named_by_a_flag, only_sessions, run_here,
    run_or_newest,
};
