//! Who wrote an event.

use ic_base::{Code, Diagnosis, Result};
use serde_json::{Map, Value, json};

/// Who did something: a user in a clone, and for whom.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Actor {
    /// The user of the machine.
    pub user: String,
    /// The clone in which it was done, as `MACHINE:DIRECTORY`.
    pub seat: String,
    /// The coding agent that did it or for whose session it was done: its name as a client, and what it calls the session.
    pub session: Option<(String, String)>,
    /// The dispatch on whose behalf it was done.
    pub dispatch: Option<String>,
}

impl Actor {
    /// The user and the machine: `ann@laptop`.
    pub fn person(&self) -> String {
        let machine = self.seat.split_once(':').map_or(self.seat.as_str(), |(machine, _)| machine);
        format!("{}@{machine}", self.user)
    }

    /// Who that is in a few words: `ann@laptop`, for an agent `claude-code of ann@laptop`, and with the dispatch: `ann@laptop in 3f9a12c4`.
    pub fn in_words(&self) -> String {
        let person = self.person();
        let who = self.session.as_ref().map_or_else(|| person.clone(), |(client, _)| format!("{client} of {person}"));
        // The end of an id, as everywhere.
        let end = |id: &String| id.get(id.len().saturating_sub(8)..).unwrap_or_default().to_owned();
        self.dispatch.as_ref().map_or_else(|| who.clone(), |id| format!("{who} in {}", end(id)))
    }

    /// As it stands in the ledger: a JSON object with what is known, always in this order, so that a hash of it is the same everywhere.
    pub(crate) fn to_text(&self) -> String {
        let mut known = Map::new();
        known.insert("user".to_owned(), json!(self.user));
        known.insert("seat".to_owned(), json!(self.seat));
        if let Some((client, id)) = &self.session {
            known.insert("client".to_owned(), json!(client));
            known.insert("session".to_owned(), json!(id));
        }
        if let Some(dispatch) = &self.dispatch {
            known.insert("dispatch".to_owned(), json!(dispatch));
        }
        Value::Object(known).to_string()
    }

    /// Errors: `corrupt` if it is no such object.
    pub(crate) fn from_text(text: &str) -> Result<Self> {
        let corrupt = || Diagnosis::new(Code::Corrupt, "An event of the ledger does not say who wrote it.");
        let fields: Map<String, Value> = serde_json::from_str(text).map_err(|_| corrupt())?;
        let field = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
        Ok(Self {
            user: field("user").ok_or_else(corrupt)?,
            seat: field("seat").ok_or_else(corrupt)?,
            // They are written together: the id of a session means something to its client alone.
            session: field("client").zip(field("session")),
            dispatch: field("dispatch"),
        })
    }
}
