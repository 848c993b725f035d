//! The shapes that many nouns share: paths, warnings, refusals.

use ic_base::Diagnosis;
use ic_checkpoint::manifest::PathText;
use ic_ledger::path_from_bytes;
use ic_worktree::Warning;
use serde_json::{Map, Value};

use crate::views::PathJson;

shape! {
    /// A problem that did not stop the command.
    pub(crate) struct WarningJson from warning: &Warning {
        code: &'static str = warning.code,
        message: String = warning.message.clone(),
    }

    /// A path that was left out.
    pub(crate) struct SkippedJson from (path: &[u8], reason: String) {
        #[serde(flatten)]
        pub(super) path: PathJson = path_from_bytes(path).as_path().into(),
        /// The reason why it was left out.
        pub(super) reason: String = reason,
    }

    /// The error that the real call would end with now.
    pub(crate) struct RefusalJson from refusal: &Diagnosis {
        /// Its stable code; each has a page in docs/errors/. The dry run ends with the same exit code.
        code: &'static str = refusal.code().as_str(),
        message: String = refusal.message().to_owned(),
        hint: Option<String> = refusal.get_hint().map(str::to_owned),
        details: Map<String, Value> = refusal.details().clone(),
    }
}

impl From<&PathText> for PathJson {
    fn from(path: &PathText) -> Self {
        path_from_bytes(&path.0).as_path().into()
    }
}
