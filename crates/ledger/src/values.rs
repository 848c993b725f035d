//! Values at the row boundary: what goes into a statement and what comes out of a row, whichever database keeps the ledger.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ic_base::{Code, Diagnosis, Result};
use rusqlite::types::{ToSqlOutput, ValueRef};

#[cfg(not(feature = "server"))]
#[path = "values/no_server_row.rs"]
mod server_row;
#[cfg(feature = "server")]
mod server_row;

pub(crate) use server_row::ServerRow;

/// The three kinds of column that there are: `INTEGER`, `TEXT`, `BLOB` in SQLite, `BIGINT`, `TEXT`, `BYTEA` in PostgreSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// A number, also of a boolean.
    Int,
    /// Text in UTF-8, also of enums, ids and JSON.
    Text,
    /// Bytes: a path, a hash.
    Bytes,
}

/// A value of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// Nothing; a statement must know of what kind.
    Null(ValueKind),
    /// The value of an [`ValueKind::Int`] column; a boolean is 0 or 1.
    Int(i64),
    /// The value of a [`ValueKind::Text`] column, in UTF-8.
    Text(&'a str),
    /// The value of a [`ValueKind::Bytes`] column: a path or a hash, in no encoding.
    Bytes(&'a [u8]),
}

/// What has a kind even where there is no value.
pub trait HasKind {
    /// The kind of its column.
    const KIND: ValueKind;
}

/// What a statement can be given.
pub trait ToValue {
    /// The value that is bound.
    fn value(&self) -> Value<'_>;
}

/// What a column can be read as.
pub trait FromValue: Sized {
    /// `None` if the value is of another kind, or does not fit.
    fn from_value(value: Value<'_>) -> Option<Self>;
}

/// A value that a statement can be given: `&[&id.as_str(), &seq]`.
pub type Param<'a> = &'a dyn ToValue;

macro_rules! kinds {
    ($($kind:ident: $($type:ty),+;)+) => { $($(impl HasKind for $type { const KIND: ValueKind = ValueKind::$kind; })+)+ };
}

kinds! {
    Int: i64, i32, u32, u8, bool;
    Text: str, String;
    Bytes: [u8], Vec<u8>;
}

impl<const N: usize> HasKind for [u8; N] {
    const KIND: ValueKind = ValueKind::Bytes;
}

impl<T: HasKind + ?Sized> HasKind for &T {
    const KIND: ValueKind = T::KIND;
}

macro_rules! numbers {
    ($($type:ty),+) => { $(
        impl ToValue for $type {
            fn value(&self) -> Value<'_> {
                Value::Int(i64::from(*self))
            }
        }
    )+ };
}

numbers!(i64, i32, u32, u8, bool);

impl ToValue for str {
    fn value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl ToValue for String {
    fn value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl ToValue for [u8] {
    fn value(&self) -> Value<'_> {
        Value::Bytes(self)
    }
}

impl ToValue for Vec<u8> {
    fn value(&self) -> Value<'_> {
        Value::Bytes(self)
    }
}

impl<const N: usize> ToValue for [u8; N] {
    fn value(&self) -> Value<'_> {
        Value::Bytes(self)
    }
}

impl<T: ToValue + ?Sized> ToValue for &T {
    fn value(&self) -> Value<'_> {
        (**self).value()
    }
}

impl<T: ToValue + HasKind> ToValue for Option<T> {
    fn value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Null(T::KIND), ToValue::value)
    }
}

impl FromValue for i64 {
    fn from_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Int(n) => Some(n),
            _ => None,
        }
    }
}

macro_rules! narrower {
    ($($type:ty),+) => { $(
        impl FromValue for $type {
            fn from_value(value: Value<'_>) -> Option<Self> {
                i64::from_value(value).and_then(|n| n.try_into().ok())
            }
        }
    )+ };
}

narrower!(i32, u32, u64, usize);

impl FromValue for bool {
    fn from_value(value: Value<'_>) -> Option<Self> {
        i64::from_value(value).map(|n| n != 0)
    }
}

impl FromValue for String {
    fn from_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Text(text) => Some(text.to_owned()),
            _ => None,
        }
    }
}

impl FromValue for Vec<u8> {
    fn from_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Bytes(bytes) => Some(bytes.to_owned()),
            _ => None,
        }
    }
}

impl<const N: usize> FromValue for [u8; N] {
    fn from_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Bytes(bytes) => bytes.try_into().ok(),
            _ => None,
        }
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: Value<'_>) -> Option<Self> {
        match value {
            // `Some(None)` is NULL; `None` means that the value does not fit.
            Value::Null(_) => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
}

/// The pattern of `lower(column) LIKE $1 ESCAPE '\'` for what contains this text, whatever its ASCII letters' case.
pub fn containing(text: &str) -> String {
    let mut pattern = String::from("%");
    for c in text.chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        // ASCII alone, because `lower` of SQLite knows no other letters.
        pattern.push(c.to_ascii_lowercase());
    }
    pattern + "%"
}

/// A value as SQLite is given it.
pub(crate) struct BoundValue<'a>(pub(crate) Value<'a>);

impl rusqlite::ToSql for BoundValue<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            Value::Null(_) => ValueRef::Null,
            Value::Int(n) => ValueRef::Integer(n),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// A value as SQLite gives it; `None` if it is of no kind that a ledger has.
fn of_file(value: ValueRef<'_>) -> Option<Value<'_>> {
    match value {
        // SQLite's NULL has no kind; readers ask only whether there is a value.
        ValueRef::Null => Some(Value::Null(ValueKind::Text)),
        ValueRef::Integer(n) => Some(Value::Int(n)),
        ValueRef::Text(text) => std::str::from_utf8(text).ok().map(Value::Text),
        ValueRef::Blob(bytes) => Some(Value::Bytes(bytes)),
        ValueRef::Real(_) => None,
    }
}

/// The newest event, with its hash, as the lock of a server's writers found it.
pub(crate) type EventHead = (i64, [u8; 32]);

/// One row of a result. Columns are counted from 0, in the order of the SELECT.
pub struct LedgerRow<'a>(pub(crate) RowSource<'a>);

/// Which database gave the row.
pub(crate) enum RowSource<'a> {
    File(&'a rusqlite::Row<'a>),
    Server(&'a ServerRow),
}

impl RowSource<'_> {
    /// The value of a column; `None` if it is of no kind that a ledger has.
    fn value(&self, index: usize) -> Option<Value<'_>> {
        match self {
            Self::File(row) => of_file(row.get_ref(index).ok()?),
            Self::Server(row) => server_row::value(row, index),
        }
    }

    fn column(&self, index: usize) -> Option<&str> {
        match self {
            Self::File(row) => row.as_ref().column_name(index).ok(),
            Self::Server(row) => server_row::column(row, index),
        }
    }
}

impl LedgerRow<'_> {
    /// How many columns it has.
    pub fn width(&self) -> usize {
        match &self.0 {
            RowSource::File(row) => row.as_ref().column_count(),
            RowSource::Server(row) => server_row::width(row),
        }
    }

    /// The raw value of a column; `None` if it is of no kind that a ledger has.
    pub fn value(&self, index: usize) -> Option<Value<'_>> {
        self.0.value(index)
    }

    /// The value of a column. Errors: `corrupt` if it has another type, naming column and row.
    pub fn get<T: FromValue>(&self, index: usize) -> Result<T> {
        self.0.value(index).and_then(T::from_value).ok_or_else(|| {
            Diagnosis::new(Code::Corrupt, format!("The {} is not what it must be.", self.describe(index)))
                .hint("run `ic health`")
        })
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

    /// As [`LedgerRow::path`], for a column that may be NULL.
    pub fn optional_path(&self, index: usize) -> Result<Option<PathBuf>> {
        Ok(self.get::<Option<Vec<u8>>>(index)?.map(|b| path_from_bytes(&b)))
    }

    /// `column "status" of the row that begins with "019c..."`.
    fn describe(&self, index: usize) -> String {
        let column = self.0.column(index).unwrap_or("?");
        let first = match self.0.value(0) {
            Some(Value::Text(text)) => text.to_owned(),
            Some(Value::Int(n)) => n.to_string(),
            _ => "?".to_owned(),
        };
        format!("column \"{column}\" of the row that begins with {first:?}")
    }
}

/// The stored form of a path: its bytes, whatever their encoding.
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

    use super::{FromValue, LedgerRow, RowSource, ToValue, Value, ValueKind};

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
        connection
            .query_row(sql, [word], |row| Ok(LedgerRow(RowSource::File(row)).parse(1, "lights", Light::parse)))
            .unwrap()
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

    #[test]
    fn a_value_comes_back_as_it_was_given() {
        fn round<T: ToValue + FromValue + PartialEq + std::fmt::Debug>(value: &T) {
            assert_eq!(T::from_value(value.value()).as_ref(), Some(value));
        }
        round(&i64::MIN);
        round(&7_i32);
        round(&u32::MAX);
        round(&true);
        round(&"a\u{0}b".to_owned());
        round(&vec![0_u8, 255]);
        round(&[3_u8; 32]);
        round(&Some("x".to_owned()));
        round(&None::<i64>);
        assert_eq!(None::<&[u8]>.value(), Value::Null(ValueKind::Bytes));
        assert_eq!(u32::from_value(Value::Int(-1)), None);
        assert_eq!(String::from_value(Value::Bytes(b"x")), None);
        assert_eq!(<[u8; 2]>::from_value(Value::Bytes(b"x")), None);
    }
}
