//! Single values of the application's rows, and counts of rows by table.

use std::fmt;

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

/// A value with its storage class: <https://sqlite.org/datatype3.html>.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SqlScalar {
    /// The value NULL, or no value.
    Null,
    /// A 64-bit integer: INTEGER.
    Integer(i64),
    /// A 64-bit floating point number: REAL.
    Real(f64),
    /// A text in UTF-8: TEXT.
    Text(String),
    /// Bytes, in JSON `{"blob": [...]}`.
    Blob {
        /// The bytes in their order.
        blob: Vec<u8>,
    },
}

impl SqlScalar {
    /// The value in the form for people, whatever its bytes are.
    pub(crate) fn shown(value: ValueRef<'_>) -> String {
        match value {
            ValueRef::Null => "NULL".to_owned(),
            ValueRef::Integer(n) => n.to_string(),
            // It is `1.0` and not `1`, so that the storage class is visible.
            ValueRef::Real(r) => format!("{r:?}"),
            ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
            ValueRef::Blob(bytes) => {
                format!("x'{}'", bytes.iter().map(|b| format!("{b:02x}")).collect::<String>())
            }
        }
    }

    fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Null => ValueRef::Null,
            Self::Integer(n) => ValueRef::Integer(*n),
            Self::Real(r) => ValueRef::Real(*r),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob { blob } => ValueRef::Blob(blob),
        }
    }
}

impl fmt::Display for SqlScalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Self::shown(self.as_ref()))
    }
}

impl From<&str> for SqlScalar {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl FromSql for SqlScalar {
    /// Text that is not UTF-8 is an error: after a conversion it would not be found again.
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(n) => Self::Integer(n),
            ValueRef::Real(r) => Self::Real(r),
            ValueRef::Text(text) => {
                Self::Text(std::str::from_utf8(text).map_err(|e| FromSqlError::Other(Box::new(e)))?.to_owned())
            }
            ValueRef::Blob(bytes) => Self::Blob { blob: bytes.to_owned() },
        })
    }
}

impl ToSql for SqlScalar {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(self.as_ref()))
    }
}

/// The numbers of rows by table, in the order in which the tables are cut. In JSON an object with that order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowCounts(Vec<(String, u64)>);

impl RowCounts {
    pub(crate) fn push(&mut self, table: &str, rows: u64) {
        self.0.push((table.to_owned(), rows));
    }

    /// The number for `table`; `None` if that table is not cut.
    pub fn get(&self, table: &str) -> Option<u64> {
        self.iter().find(|(name, _)| *name == table).map(|(_, rows)| rows)
    }

    /// Every table with its number, in that order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, rows)| (name.as_str(), *rows))
    }

    /// The sum over all tables.
    pub fn total(&self) -> u64 {
        self.0.iter().map(|(_, rows)| rows).sum()
    }
}

impl Serialize for RowCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (table, rows) in &self.0 {
            map.serialize_entry(table, rows)?;
        }
        map.end()
    }
}
