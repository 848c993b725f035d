//! Rollbacks as they are recorded. Owns `rollbacks` and `rollback_steps`.
//!
//! The engine that goes back lies above. What only asks about rollbacks (history, points, retention, a run that is closed) reads them
//! here, and knows nothing of the engine.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

pub mod choices;
mod force;
pub mod kept;
pub mod layer;
pub mod made;
pub mod planned;
pub mod steps;
pub mod table;

pub use choices::Choices;
pub use force::Force;
pub use layer::Layer;
pub use steps::{Course, Happening, Step, StepKind, StepState};
pub use table::{RollbackRecord, RollbackStatus};
