//! What the verbs print: for each noun, its JSON shapes and its text.
//!
//! The shapes are the contract: each has a schema in `docs/schemas/`, and fields are added, never renamed or removed. The text is a
//! function beside the shape. It is written from the same value, because it mostly needs what no JSON has, such as the bytes of a path, the
//! current time, or a status as an enum. If the shape has all that it needs, it is written from the shape.

/// Declares JSON shapes. Each field is written once: its name, its type, and the expression for its value.
///
/// `struct X from source: &S { field: Type = value, }` gets `X::from`; with several sources in parentheses, `X::new`. Values that several
/// fields need are named before the fields, after `where`. A struct without a source is built by hand. A field is declared `as` an enum if
/// its value is a word of that enum.
macro_rules! shape {
    () => {};
    (
        $(#[$meta:meta])* $vis:vis struct $name:ident from $from:tt: $source:ty
        $(where $($local:pat = $init:expr;)+)?
        {
            $($(#[$about:meta])* $seen:vis $field:ident: $type:ty $(as $words:ty)? = $value:expr,)+
        }
        $($rest:tt)*
    ) => {
        shape! { $(#[$meta])* $vis struct $name { $($(#[$about])* $seen $field: $type $(as $words)?,)+ } }

        impl From<$source> for $name {
            fn from($from: $source) -> Self {
                $($(let $local = $init;)+)?
                Self { $($field: $value,)+ }
            }
        }

        shape! { $($rest)* }
    };
    (
        $(#[$meta:meta])* $vis:vis struct $name:ident from ($($from:ident: $source:ty),+ $(,)?)
        $(where $($local:pat = $init:expr;)+)?
        {
            $($(#[$about:meta])* $seen:vis $field:ident: $type:ty $(as $words:ty)? = $value:expr,)+
        }
        $($rest:tt)*
    ) => {
        shape! { $(#[$meta])* $vis struct $name { $($(#[$about])* $seen $field: $type $(as $words)?,)+ } }

        impl $name {
            pub(crate) fn new($($from: $source),+) -> Self {
                $($(let $local = $init;)+)?
                Self { $($field: $value,)+ }
            }
        }

        shape! { $($rest)* }
    };
    (
        $(#[$meta:meta])* $vis:vis struct $name:ident {
            $($(#[$about:meta])* $seen:vis $field:ident: $type:ty $(as $words:ty)?,)+
        }
        $($rest:tt)*
    ) => {
        #[derive(serde::Serialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        $(#[$meta])*
        $vis struct $name {
            $(
                $(#[cfg_attr(test, schemars(extend("enum" = <$words>::WORDS)))])?
                $(#[$about])*
                $seen $field: $type,
            )+
        }

        shape! { $($rest)* }
    };
}

pub(crate) mod agent;
pub(crate) mod artifact;
pub(crate) mod blame;
pub(crate) mod cancel;
pub(crate) mod checkpoint;
pub(crate) mod code;
pub(crate) mod common_shapes;
pub(crate) mod compensation;
pub(crate) mod config;
pub(crate) mod conversation;
pub(crate) mod dispatch;
pub(crate) mod event;
pub(crate) mod fork;
pub(crate) mod gate;
pub(crate) mod history;
pub(crate) mod hooks;
pub(crate) mod ledger;
pub(crate) mod log;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod rewind;
pub(crate) mod rollback;
pub(crate) mod run;
pub(crate) mod session;
pub(crate) mod show;
pub(crate) mod status;
#[cfg(test)]
mod tests;
pub(crate) mod ui;
pub(crate) mod wait;
pub(crate) mod workflow;

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

shape! {
    /// A path: lossy text, with the exact bytes beside it when they are not UTF-8.
    pub(crate) struct PathJson from path: &Path {
        /// The path, lossy if it is not UTF-8.
        pub(crate) path: String = path.to_string_lossy().into_owned(),
        /// The path's exact bytes in base64, when it is not UTF-8.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub(crate) path_b64: Option<String> = exact(path),
    }
}

/// The bytes of a path in base64; `None` if it is UTF-8.
pub(crate) fn exact(path: &Path) -> Option<String> {
    path.to_str().is_none().then(|| STANDARD.encode(ic_ledger::path_bytes(path)))
}
