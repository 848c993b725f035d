//! Rewinds of applications' databases through the real binary: the profile `devs`, a real `LangGraph` checkpointer, databases that
//! were never seen, tables of vectors, git before the rows, crashes at every statement, and applications that write during a rewind.

mod archives;
mod combined_stages;
mod crash;
mod devs;
mod git;
mod langgraph;
mod project;
mod scopes;
mod targets;
mod unknown;
mod vectors;
