//! The settings in force.

use ic_kernel::config::{Loaded, Setting};
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::text::{Cell, TextTable, path_text, style};

shape! {
    struct SettingJson {
        /// Sizes in bytes, durations as text (`7d`), null for no limit.
        #[cfg_attr(test, schemars(with = "crate::views::tests::ValueJson"))]
        value: Value,
        source: Source,
        /// A remark, where the effect of the setting may surprise, or something else decides it.
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<&'static str>,
    }
}

/// Every setting in force by its flat key, in a fixed order, with its source.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(transparent))]
pub(crate) struct ConfigJson(
    #[cfg_attr(test, schemars(with = "std::collections::BTreeMap<String, SettingJson>"))]
    Vec<(&'static str, SettingJson)>,
);

/// The source of a setting.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum Source {
    Default,
    File,
}

impl From<&Loaded> for ConfigJson {
    fn from(loaded: &Loaded) -> Self {
        let entry = |setting: Setting| {
            let source = if setting.from_file { Source::File } else { Source::Default };
            (setting.key, SettingJson { value: setting.value, source, note: setting.note })
        };
        Self(loaded.settings().into_iter().map(entry).collect())
    }
}

impl Serialize for ConfigJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, setting)| (key, setting)))
    }
}

/// Every setting, one a line, with its source.
pub(crate) fn table(loaded: &Loaded) -> String {
    let mut table = TextTable::new(&["KEY", "VALUE", "FROM"]);
    let file = loaded.file.as_deref().map_or_else(String::new, path_text);
    for setting in loaded.settings() {
        let value = match &setting.value {
            Value::String(text) => text.clone(),
            Value::Null => "none".to_owned(),
            other => other.to_string(),
        };
        let place = if setting.from_file { &file } else { "default" };
        let place = setting.note.map_or_else(|| place.to_owned(), |note| format!("{place}; {note}"));
        let from = if setting.from_file { Cell::from(place.as_str()) } else { Cell::new(style::DIM, &place) };
        table.row(vec![Cell::new(style::STRONG, setting.key), value.as_str().into(), from]);
    }
    table.render("No settings.")
}
