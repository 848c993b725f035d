//! Ids: `UUIDv7` as hyphenated text, one type per kind of thing so that they cannot be mixed up.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::clock::Timestamp;

/// Where new ids come from.
pub trait IdSource: Send + Sync {
    /// A `UUIDv7` whose clock part is `now`.
    fn next(&self, now: Timestamp) -> Uuid;
}

/// Ids from the operating system's randomness.
#[derive(Debug, Clone, Copy)]
pub struct RandomIds;

impl IdSource for RandomIds {
    #[allow(clippy::disallowed_methods, reason = "the one place that makes random ids")]
    fn next(&self, now: Timestamp) -> Uuid {
        let mut random = [0; 10];
        // From a v4 id, which is random throughout. The crate's own v7 reads the machine's clock, and panics if that is before 1970.
        random.copy_from_slice(&Uuid::new_v4().as_bytes()[6..]);
        uuid::Builder::from_unix_timestamp_millis(unix_millis(now), &random).into_uuid()
    }
}

/// Ids that repeat for the same seed, for tests.
#[derive(Debug)]
pub struct SeededIds(AtomicU64);

impl SeededIds {
    /// A source whose first id ends in `seed`.
    pub fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }
}

impl<I: IdSource> IdSource for &I {
    fn next(&self, now: Timestamp) -> Uuid {
        (*self).next(now)
    }
}

impl IdSource for SeededIds {
    fn next(&self, now: Timestamp) -> Uuid {
        let mut random = [0; 10];
        // The number stands at the end of the id, so that a test recognises the seed in its short form.
        random[2..].copy_from_slice(&self.0.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        uuid::Builder::from_unix_timestamp_millis(unix_millis(now), &random).into_uuid()
    }
}

fn unix_millis(now: Timestamp) -> u64 {
    // A UUIDv7 has no sign in its time: a clock before 1970 counts as 1970.
    u64::try_from(now.millis()).unwrap_or(0)
}

/// The hex digits of an id, last first, without hyphens.
///
/// People name things by the last digits of an id (the first ones are a clock), so the ledger keeps this text
/// beside each id: a suffix of an id is a prefix of it, and an index finds prefixes.
pub fn reversed_digits(id: &str) -> String {
    id.chars().rev().filter(|c| *c != '-').collect()
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// The whole id as hyphenated text, as it stands in rows and in JSON.
            pub fn as_str(&self) -> &str { &self.0 }

            /// The last eight digits: what people are shown.
            pub fn short(&self) -> &str {
                let start = self.0.char_indices().rev().nth(7).map_or(0, |(at, _)| at);
                &self.0[start..]
            }

            /// An id that was read from the ledger; it is not parsed again.
            pub fn from_ledger(text: String) -> Self { Self(text) }
        }

        impl From<Uuid> for $name {
            fn from(uuid: Uuid) -> Self { Self(uuid.hyphenated().to_string()) }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str(&self.0) }
        }
    )*};
}

ids! {
    /// Names a run; every row that belongs to the run repeats it.
    RunId;
    /// Names a dispatch; a worker reports with it (`IC_DISPATCH_ID`).
    DispatchId;
    /// Names an artifact of a run.
    ArtifactId;
    /// Names an agent that was registered with a run.
    AgentId;
    /// Names a rollback and its journal.
    RollbackId;
    /// Names a checkpoint, which may have a name of its own as well.
    CheckpointId;
    /// A restore of a checkpoint.
    RestoreId;
    /// Names the compensation of one effect.
    CompensationId;
    /// A rewind of an application's database.
    RewindId;
    /// A session of a coding agent.
    SessionId;
    /// A tool call of a coding agent.
    CallId;
    /// A ledger: what its object store knows it by.
    LedgerId;
}

#[cfg(test)]
mod tests {
    use super::{IdSource, RandomIds, RunId, SeededIds, reversed_digits};
    use crate::clock::Timestamp;

    #[test]
    fn ids_carry_the_clock_and_differ() {
        let (a, b) = (RandomIds.next(Timestamp(1)), RandomIds.next(Timestamp(1)));
        assert_ne!(a, b);
        assert_eq!(a.get_version_num(), 7);
        assert_eq!(&a.as_bytes()[..6], &[0, 0, 0, 0, 0, 1]);
        assert_eq!(SeededIds::new(7).next(Timestamp(0)), SeededIds::new(7).next(Timestamp(0)));
    }

    #[test]
    fn the_short_form_is_the_end() {
        let id = RunId::from(SeededIds::new(0xabcd_ef01).next(Timestamp(5)));
        assert_eq!(id.short(), "abcdef01");
        assert!(reversed_digits(id.as_str()).starts_with("10fedcba"));
        assert_eq!(reversed_digits(id.as_str()).len(), 32);
    }
}
