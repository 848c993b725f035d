//! How a conversation is continued.

use std::path::Path;

use ic_session::conversation_point::ConversationPoint;

use crate::text::{style, styled};
use crate::views::PathJson;

shape! {
    /// The client's own command that continues a conversation from before a prompt (`session continue`).
    pub(crate) struct ConversationJson from (client: &str, words: &[String], place: &Path, line: String) {
        client: String = client.to_owned(),
        /// The command and its arguments.
        argv: Vec<String> = words.to_vec(),
        /// The directory in which it is run.
        #[serde(flatten)]
        place: PathJson = place.into(),
        /// Both, as a line for a shell.
        line: String = line,
    }

    /// A conversation that still has an undone prompt.
    pub(crate) struct UndoneConversationJson from point: &ConversationPoint {
        client: String = point.session.client.clone(),
        session_id: String = point.session.id.to_string(),
        /// The first prompt that was undone.
        dispatch_id: String = point.prompt.dispatch_id.to_string(),
        /// The command that continues it from before that prompt.
        pub(crate) command: String = format!("ic session continue {}", point.prompt.dispatch_id.short()),
    }
}

/// The line below the report of an undo.
pub(crate) fn way_on(undone: &UndoneConversationJson) -> String {
    let line = format!("{} still knows of it; to continue from before it: {}", undone.client, undone.command);
    styled(style::DIM, &line) + "\n"
}
