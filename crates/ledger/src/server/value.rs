//! Values on their way to the server.

use bytes::BytesMut;
use ic_base::{Code, Diagnosis, Result};
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use crate::values::{Param, Value, ValueKind};

type Failure = Box<dyn std::error::Error + Sync + Send>;

/// A value that a request owns: it may wait for the next one to travel with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Owned {
    Null(ValueKind),
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// The values of a statement. Errors: `invalid_value` for text that no text of the server can hold.
pub(super) fn bind(params: &[Param<'_>]) -> Result<Vec<Owned>> {
    params
        .iter()
        .map(|param| match param.value() {
            Value::Null(kind) => Ok(Owned::Null(kind)),
            Value::Int(n) => Ok(Owned::Int(n)),
            Value::Text(text) if text.contains('\0') => Err(Diagnosis::new(
                Code::InvalidValue,
                "A text with a zero character cannot be kept in a ledger on a server.",
            )
            .hint("leave it out")),
            Value::Text(text) => Ok(Owned::Text(text.to_owned())),
            Value::Bytes(bytes) => Ok(Owned::Bytes(bytes.to_owned())),
        })
        .collect()
}

impl Owned {
    /// The type that the server is told: it need not guess that of `$1 IS NULL`.
    pub(super) fn sql_type(&self) -> Type {
        match self {
            Self::Null(ValueKind::Int) | Self::Int(_) => Type::INT8,
            Self::Null(ValueKind::Text) | Self::Text(_) => Type::TEXT,
            Self::Null(ValueKind::Bytes) | Self::Bytes(_) => Type::BYTEA,
        }
    }
}

impl ToSql for Owned {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> std::result::Result<IsNull, Failure> {
        match self {
            Self::Null(_) => Ok(IsNull::Yes),
            Self::Int(n) => n.to_sql(ty, out),
            Self::Text(text) => text.to_sql(ty, out),
            Self::Bytes(bytes) => bytes.to_sql(ty, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        // The server does not guess: each value travels with its type.
        true
    }

    to_sql_checked!();
}
