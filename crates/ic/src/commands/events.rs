//! `ic events ...`

mod cursor;
mod redact;
mod tail;
mod verify;

use crate::lazy_verbs::Later;

verbs! {
    pub(crate) enum EventsVerb {
        Tail(tail::Tail),
        /// Durable positions of consumers: list, commit, reset
        #[command(subcommand)]
        Cursor(Later<cursor::EventsCursorVerb>),
        Verify(verify::EventsVerifyArgs),
        Redact(redact::Redact),
    }
}
