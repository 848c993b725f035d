//! Values at the row boundary: what goes into a statement and what comes out of a row.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ic_base::{Code, Diagnosis, Result};
use rusqlite::types::FromSql;

use crate::error::diagnose;

/// A value that a statement can be given: `&[&id.as_str(), &seq]`.
pub type Param<'a> = &'a dyn rusqlite::ToSql;

/// The pattern of `lower(column) LIKE $1 ESCAPE '\'` for what contains this text, whatever its ASCII letters' case.
pub fn containing(text: &str) -> String {
    let mut pattern = String::from("%");
    for c in text.chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c.to_ascii_lowercase());
    }
    pattern + "%"
}

/// One row of a result. Columns are counted from 0, in the order of the SELECT.
pub struct Row<'a>(pub(crate) &'a rusqlite::Row<'a>);

impl Row<'_> {
    /// The value of a column. Errors: `corrupt` if it has another type, naming column and row.
    pub fn get<T: FromSql>(&self, index: usize) -> Result<T> {
        self.0.get(index).map_err(|e| diagnose(e, &format!("reading {}", self.describe(index))))
    }

    /// The value of a text column, turned into something narrower (a status, a JSON document).
    ///
    /// Errors: `corrupt`, naming table, column and row, when `parse` does not know the text.
    pub fn parse<T>(&self, index: usize, table: &str, parse: impl FnOnce(&str) -> Option<T>) -> Result<T> {
        let text: String = self.get(index)?;
        parse(&text).ok_or_else(|| {
            Diagnosis::new(
                Code::Corrupt,
                format!("{table}: {} holds {text:?}, which is not known.", self.describe(index)),
            )
            .hint("run `ic health`")
        })
    }

    /// The path in a column; paths are stored as their bytes.
    pub fn path(&self, index: usize) -> Result<PathBuf> {
        Ok(path_from_bytes(&self.get::<Vec<u8>>(index)?))
    }

    /// As [`Row::path`], for a column that may be NULL.
    pub fn optional_path(&self, index: usize) -> Result<Option<PathBuf>> {
        Ok(self.get::<Option<Vec<u8>>>(index)?.map(|b| path_from_bytes(&b)))
    }

    /// `column "status" of the row that begins with "019c..."`.
    fn describe(&self, index: usize) -> String {
        let column = self.0.as_ref().column_name(index).unwrap_or("?");
        let first = match self.0.get_ref(0) {
            Ok(rusqlite::types::ValueRef::Text(t)) => String::from_utf8_lossy(t).into_owned(),
            Ok(rusqlite::types::ValueRef::Integer(n)) => n.to_string(),
            _ => "?".to_owned(),
        };
        format!("column \"{column}\" of the row that begins with {first:?}")
    }
}

/// A path as it is stored: its bytes, whatever their encoding.
pub fn path_bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// The path that [`path_bytes`] stored.
pub fn path_from_bytes(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use ic_base::{Code, Diagnosis};
    use rusqlite::Connection;

    use super::Row;

    ic_base::words! {
        enum Light {
            /// Go.
            Green = "green",
            /// Stop.
            Red = "red",
        }
    }

    fn read(word: &str) -> Result<Light, Diagnosis> {
        let connection = Connection::open_in_memory().unwrap();
        let sql = "SELECT 'a17' AS id, ?1 AS colour";
        connection.query_row(sql, [word], |row| Ok(Row(row).parse(1, "lights", Light::parse))).unwrap()
    }

    #[test]
    fn a_word_that_is_not_known_names_table_column_and_row() {
        for light in Light::ALL {
            assert_eq!(read(light.as_str()).unwrap(), light);
        }
        for word in ["amber", "Green", "green ", ""] {
            let error = read(word).unwrap_err();
            let message = format!(
                "lights: column \"colour\" of the row that begins with \"a17\" holds {word:?}, which is not known."
            );
            assert_eq!((error.code(), error.message()), (Code::Corrupt, message.as_str()));
        }
    }
}
