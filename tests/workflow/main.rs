//! Campaigns against workflows: whatever kills, holds up or crosses their executor, each effect of a step stands once or is
//! undone once, in reverse, and what is not undone is said.

mod after;
mod calls;
mod cancelled;
mod crowd;
mod databases;
mod effects;
mod files;
mod flow;
mod idle;
mod living;
mod matrix;
mod moved;
mod order;
mod output;
mod pivot;
mod points;
mod shell;
mod statements;
mod target;
mod world;
