//! `ic events ...`

mod cursor;
mod redact;
mod tail;
mod verify;

verbs! {
    pub(crate) enum Verb {
        Tail(tail::Tail),
        /// Durable positions of consumers: list, commit, reset
        #[command(subcommand)]
        Cursor(cursor::Verb),
        Verify(verify::Verify),
        Redact(redact::Redact),
    }
}
