//! Rows as a server gives them.

use tokio_postgres::types::{FromSql, Type};

use super::{Value, ValueKind};

pub(crate) use tokio_postgres::Row as ServerRow;

type Failure = Box<dyn std::error::Error + Sync + Send>;

/// The bytes of a column as they came, with their type.
struct Raw<'a>(Option<&'a [u8]>, Type);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> std::result::Result<Self, Failure> {
        Ok(Self(Some(raw), ty.clone()))
    }

    fn from_sql_null(ty: &Type) -> std::result::Result<Self, Failure> {
        Ok(Self(None, ty.clone()))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// The value of a column; `None` if it is of no kind that a ledger has.
pub(super) fn value(row: &ServerRow, index: usize) -> Option<Value<'_>> {
    let Raw(bytes, ty) = row.try_get(index).ok()?;
    let Some(bytes) = bytes else { return Some(Value::Null(kind_of(&ty))) };
    // The length tells the type: one byte is a boolean, the others are INT2, INT4 and INT8.
    let number = || match *bytes {
        [a] => Some(i64::from(a)),
        [a, b] => Some(i64::from(i16::from_be_bytes([a, b]))),
        [a, b, c, d] => Some(i64::from(i32::from_be_bytes([a, b, c, d]))),
        _ => bytes.try_into().ok().map(i64::from_be_bytes),
    };
    match ty {
        Type::INT8 | Type::INT4 | Type::INT2 | Type::BOOL => number().map(Value::Int),
        Type::TEXT | Type::VARCHAR | Type::NAME => std::str::from_utf8(bytes).ok().map(Value::Text),
        Type::BYTEA => Some(Value::Bytes(bytes)),
        _ => None,
    }
}

/// The name of a column.
pub(super) fn column(row: &ServerRow, index: usize) -> Option<&str> {
    row.columns().get(index).map(tokio_postgres::Column::name)
}

/// How many columns it has.
pub(super) fn width(row: &ServerRow) -> usize {
    row.len()
}

fn kind_of(ty: &Type) -> ValueKind {
    match *ty {
        Type::INT8 | Type::INT4 | Type::INT2 | Type::BOOL => ValueKind::Int,
        Type::BYTEA => ValueKind::Bytes,
        _ => ValueKind::Text,
    }
}
