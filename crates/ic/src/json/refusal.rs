//! What a dry run says of the real call.

use ic_base::Diagnosis;
use serde::Serialize;
use serde_json::{Map, Value};

/// Why the real call would be refused now, in the form of its error.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RefusalJson {
    /// Stable; each has a page in docs/errors/. The dry run ends with its exit code.
    code: &'static str,
    message: String,
    hint: Option<String>,
    details: Map<String, Value>,
}

impl From<&Diagnosis> for RefusalJson {
    fn from(refusal: &Diagnosis) -> Self {
        Self {
            code: refusal.code().as_str(),
            message: refusal.message().to_owned(),
            hint: refusal.get_hint().map(str::to_owned),
            details: refusal.details().clone(),
        }
    }
}
