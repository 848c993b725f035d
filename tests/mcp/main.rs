//! The server of `ic mcp`, as a client sees it: JSON-RPC over standard input and output, in older and newer protocols, beside the command
//! line.

mod answers;
mod client;
mod concurrent_calls;
mod elicitation;
mod ends;
mod growth;
mod hostile;
mod installed;
mod offered;
mod on_server;
mod project;
mod resumed;
mod two_steps;
