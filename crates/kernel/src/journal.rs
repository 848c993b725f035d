//! Rollbacks as they are recorded. Owns `rollbacks` and `rollback_steps`.
//!
//! The engine that goes back lies above. What only asks about rollbacks (history, points, retention, a run that is closed) reads them
//! here, and knows nothing of the engine.

pub mod choices;
mod force_flags;
pub mod kept_checkpoints;
pub mod layer;
mod path_decisions;
pub mod planned_rollback;
pub mod step_detail;
pub mod steps;
pub mod table;

pub use choices::Choices;
pub use force_flags::Force;
pub use layer::LayerName;
pub use path_decisions::PathDecisions;
pub use step_detail::StepDetail;
pub use steps::{Course, RollbackStep, RollbackStepState, StepEvent, StepKind};
pub use table::{RollbackRecord, RollbackStatus};
