//! The configuration in force.

use ic_kernel::config::Loaded;
use serde_json::Value;

use super::{Cell, Table, path_text, style};

/// Every setting, one a line.
pub(crate) fn table(loaded: &Loaded) -> String {
    let mut table = Table::new(&["KEY", "VALUE", "FROM"]);
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
