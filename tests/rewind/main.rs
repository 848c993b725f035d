//! Rewinds of applications' databases through the real binary: the profile `devs`, a real `LangGraph` checkpointer, databases that
//! were never seen, tables of vectors, git before the rows, crashes at every statement, and applications that write during a rewind.

mod crash;
mod devs;
mod git;
mod kept;
mod langgraph;
mod scopes;
mod targets;
mod together;
mod unknown;
mod vectors;
mod world;
