//! Enums whose values are words: in rows, in files, on the command line and in JSON.

/// Makes an enum of words: its type, `ALL`, `WORDS`, `as_str` and `parse`, from one list.
///
/// A word outside of the list is never taken for one of them: the code that parses a row fails with `corrupt` and names table,
/// column and row. The contract's schemas list `WORDS`, in the order of the declaration.
///
/// ```
/// ic_base::words! {
///     /// How a step ended.
///     #[derive(PartialOrd, Ord)]
///     pub enum End {
///         /// Well.
///         Succeeded = "succeeded",
///         /// Badly.
///         Failed = "failed",
///     }
/// }
/// assert_eq!(End::WORDS, ["succeeded", "failed"]);
/// assert_eq!(End::parse("failed"), Some(End::Failed));
/// assert_eq!(End::parse("Failed"), None);
/// assert_eq!(End::ALL.map(End::as_str), End::WORDS);
/// ```
#[macro_export]
macro_rules! words {
    ($(#[$meta:meta])* $seen:vis enum $name:ident {
        $($(#[$about:meta])* $variant:ident = $word:literal,)+
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        $seen enum $name {
            $($(#[$about])* $variant,)+
        }

        impl $name {
            /// Every value, in the order of the declaration.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// Their words, in the same order.
            pub const WORDS: [&'static str; [$($word),+].len()] = [$($word),+];

            /// The word on the command line, in JSON, in rows and in events.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// What a word means; `None`: nothing.
            pub fn parse(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}
