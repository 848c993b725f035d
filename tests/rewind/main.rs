//! Rewinds of applications' databases through the real binary: the profile `devs`, a real `LangGraph` checkpointer, a database that
//! was never seen, git before the rows, crashes at every statement, and applications that write meanwhile.

mod crash;
mod devs;
mod git;
mod langgraph;
mod together;
mod unknown;
mod world;
