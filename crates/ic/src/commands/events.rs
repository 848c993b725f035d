//! `ic events ...`

mod cursor;
mod redact;
mod tail;
mod verify;

use crate::later::Later;

verbs! {
    pub(crate) enum Verb {
        Tail(tail::Tail),
        /// Durable positions of consumers: list, commit, reset
        #[command(subcommand)]
        Cursor(Later<cursor::Verb>),
        Verify(verify::Verify),
        Redact(redact::Redact),
    }
}
