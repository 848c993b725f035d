//! What stands behind the tools: the commands of the command line.

use ic_base::Result;

/// What a command said.
#[derive(Debug, Default, Clone)]
pub struct Said {
    /// Its record, or its list, as one JSON document.
    pub json: String,
    /// The same for people: no control character and no colour is in it.
    pub text: String,
    /// What it says beside that: warnings that no JSON holds.
    pub notes: Vec<String>,
    /// Whether it was only partly done (exit 4): the record names what is left.
    pub is_partly: bool,
}

/// The commands of the command line.
pub trait Commands: Send + Sync + 'static {
    /// Runs a command in this process, as if these words had been typed after `ic` where nobody can be asked.
    ///
    /// Errors: what the command would print on standard error.
    fn run(&self, words: &[String]) -> Result<Said>;

    /// Whether what is recorded can be undone with all that it did. It cannot where the ledger is on a server.
    fn undoes(&self) -> bool;

    /// The dispatch that the environment names, on whose behalf the client works.
    fn dispatch(&self) -> Option<String>;
}
