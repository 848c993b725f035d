//! The configuration in force.

use ic_ops::config::Loaded;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Every setting by its flat key: its value, and whether it is a `default` or from the `file`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(transparent)]
pub(crate) struct ConfigJson(Map<String, Value>);

impl From<&Loaded> for ConfigJson {
    fn from(loaded: &Loaded) -> Self {
        let entry = |setting: &ic_ops::config::Setting| {
            let source = if setting.from_file { "file" } else { "default" };
            (setting.key.to_owned(), json!({ "value": setting.value, "source": source }))
        };
        Self(loaded.settings().iter().map(entry).collect())
    }
}
