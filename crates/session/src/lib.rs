//! Sessions of coding agents, as their hooks report them, and the prompts in them; and what is known of each agent ([`clients`]). Owns
//! `sessions`, `prompts`, `calls` and `outside_files`.
//!
//! A prompt is a dispatch: all that the agent does from what a person typed until it stops. What every dispatch has (its status, its
//! captures, whether it was rolled back) is in that table; here is whose prompt it is.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

pub mod attribution;
pub mod call;
pub mod clients;
pub mod conversation;
pub mod conversation_point;
pub mod outside_files;
pub mod own_changes;
pub mod places;
mod prompt;
mod shell_targets;
mod table;

pub use call::{NewCall, OF_COMMANDS, ToolCall};
pub use prompt::{
    NewPrompt, Prompt, are_any as are_any_prompts, begin as begin_prompt, by_prompt_id, end as end_prompt,
    first_of_session, hold, latest, needed_checkpoints, newest, of_checkpoint as prompt_of_checkpoint,
    of_dispatch as prompt_of, of_session, own_runs_of, standing,
};
pub use table::{
    AgentSession, NewSession, REFERENT, begin, by_client, end, get, go_on, is_own_run, list, of_own_run, of_project,
    of_work, of_works, queue, resolve, spoken, that_calls, told, work_in,
};
