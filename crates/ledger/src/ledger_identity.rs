//! Which ledger an open one is, and whether an object store knows it.

use std::path::Path;

use ic_base::{Code, Diagnosis, LedgerId, Result};

use crate::identity::is_ledger;
use crate::ledger::Ledger;
use crate::log_match::{alone, id_of};
use crate::transaction::Snapshot;

/// A ledger's id, and whether a store knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The same in every copy of the ledger.
    pub id: LedgerId,
    /// Whether a store was found that knows the id; from then on it never changes.
    pub has_store: bool,
}

impl Ledger {
    /// Which ledger this is. Errors: `corrupt` if it has lost its id.
    pub fn identity(&self) -> Result<Identity> {
        self.read(identity)
    }

    /// Records that a store was found that knows this ledger by its id.
    pub fn found_store(&self) -> Result<()> {
        // By the condition, a second call changes no row: the trigger that protects the id would refuse any change.
        self.write(|tx| tx.execute("UPDATE ledger SET has_store = 1 WHERE has_store = 0", &[]).map(|_| ()))?;
        self.keep_in_file();
        Ok(())
    }

    /// Whether the ledger in another file is this one, too: one of them is a copy of the other.
    pub fn is_also(&self, path: &Path) -> bool {
        if self.server().is_some() {
            return false;
        }
        let Ok(own) = self.identity() else { return false };
        // A ledger has its id in its file before anything else.
        is_ledger(path).unwrap_or(false)
            && alone(path).and_then(|other| id_of(&other)).is_some_and(|id| id == own.id.as_str())
    }
}

fn identity(snapshot: &Snapshot<'_>) -> Result<Identity> {
    let found = snapshot.query_opt("SELECT id, has_store FROM ledger", &[], |row| {
        Ok(Identity { id: LedgerId::from_ledger(row.get(0)?), has_store: row.get(1)? })
    })?;
    found.ok_or_else(|| Diagnosis::new(Code::Corrupt, "The ledger has no id."))
}

#[cfg(test)]
mod tests {
    use ic_base::Context;

    use crate::connection::OpenOptions;
    use crate::ledger::Ledger;
    use crate::migrate;

    #[test]
    fn an_id_is_given_once_and_is_fixed_once_a_store_knows_it() {
        let place = tempfile::tempdir().unwrap();
        let (one, two) = (place.path().join("one.db"), place.path().join("two.db"));
        let (options, context) = (OpenOptions::default(), Context::system());
        let open = |path| {
            migrate::create(path, options, &context).unwrap();
            Ledger::open(path, options, &context).unwrap()
        };
        let (first, second) = (open(&one), open(&two));
        let id = first.identity().unwrap();
        assert!(!id.has_store);
        assert_ne!(id.id, second.identity().unwrap().id);
        assert_eq!(open(&one).identity().unwrap(), id, "another opening changes nothing");
        first.found_store().unwrap();
        let known = first.identity().unwrap();
        assert_eq!((&known.id, known.has_store), (&id.id, true));
        let update = first.write(|tx| tx.execute("UPDATE ledger SET id = 'x'", &[]));
        assert!(update.is_err());
    }
}
