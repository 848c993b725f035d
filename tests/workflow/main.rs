//! Campaigns against workflows: whatever kills, holds up or crosses their executor, each effect of a step stands once or is
//! undone once, in reverse, and what is not undone is said.

mod calls;
mod cancelled;
mod crowd;
mod databases;
mod dependencies;
mod effects;
mod files;
mod flow;
mod idle_runs;
mod living;
mod matrix;
mod moved_project;
mod order;
mod output;
mod pivot;
mod points;
mod project;
mod shell;
mod statements;
mod target;
