//! The commands of the command line, which the tools run.

use ic_base::Result;

/// What a command printed, in each of its forms.
#[derive(Debug, Default, Clone)]
pub struct Said {
    /// Its record, or its list, as one JSON document.
    pub json: String,
    /// The same for people: no control character and no colour is in it.
    pub text: String,
    /// Warnings, which are not a part of its JSON.
    pub notes: Vec<String>,
    /// Whether it was only partly done (exit 4): the record names what is left.
    pub is_partly: bool,
}

/// The commands of the command line.
pub trait Commands: Send + Sync + 'static {
    /// Runs a command in this process, as if these words had been typed after `ic` without a terminal: no question is asked.
    ///
    /// Errors: what the command would print on standard error.
    fn run(&self, words: &[String]) -> Result<Said>;

    /// Whether an undo covers files and effects as well as the record. It does not if the ledger is on a server.
    fn undoes(&self) -> bool;

    /// The dispatch that the environment names, on whose behalf the client works.
    fn dispatch(&self) -> Option<String>;
}
