//! Giving space back: free pages, and what the log holds.

use std::sync::atomic::Ordering::Relaxed;

use ic_base::Result;

use super::SideDatabase;
use crate::error::diagnose;
use crate::{faults, log};

/// A longer log, in bytes, is emptied between the steps of a command that frees space. With one step more, it stays well below the reserve
/// that is kept for a full disk.
const LONG_LOG: u64 = 128 << 10;

/// The hint after a rebuild that failed: the removal itself is committed, so the call can be repeated.
const STILL_THERE: &str = "the removed content is in no checkpoint any more, but may still be in the file's free space: \
     free as much disk space as the file takes, then repeat the call";

impl SideDatabase {
    /// Gives free pages back to the operating system and empties the log, so that the file is as small as its content; beside another
    /// process that reads for long, what is left is given back another time.
    pub fn shrink(&self) -> Result<()> {
        self.require_room()?;
        // In small steps: each moves pages through the log, and on a full disk there is little room for that.
        while self.pragma("freelist_count")? > 0 {
            faults::statement("PRAGMA incremental_vacuum");
            self.connection
                .prepare("PRAGMA incremental_vacuum(64)")
                .and_then(|mut statement| {
                    // The pragma frees pages only while it is stepped, so it is run to its end.
                    let mut rows = statement.query([])?;
                    while rows.next()?.is_some() {}
                    Ok(())
                })
                .map_err(|e| diagnose(e, "shrinking the object store"))?;
            if !self.empty_long_log()? {
                // More steps would only make the log longer.
                return Ok(());
            }
        }
        self.empty_log().map(|_| ())
    }

    /// Empties the log, so that the file's length is that of its content.
    pub fn settle(&self) -> Result<bool> {
        self.require_room()?;
        self.empty_log()
    }

    /// Empties the log if it is long: what is deleted takes room in it, before it gives any back. Returns whether it is short now.
    pub fn empty_long_log(&self) -> Result<bool> {
        if log::length(&self.path) > LONG_LOG { self.empty_log() } else { Ok(true) }
    }

    /// Empties the log. A process that reads keeps it long: that is no error, it is emptied another time. The reader is not waited for,
    /// because the caller holds the store's lock, which every capture needs.
    fn empty_log(&self) -> Result<bool> {
        faults::statement("PRAGMA wal_checkpoint(TRUNCATE)");
        self.in_a_hurry.store(true, Relaxed);
        let busy = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
        self.in_a_hurry.store(false, Relaxed);
        busy.map(|busy| busy == 0).map_err(|e| diagnose(e, "shrinking the object store"))
    }

    /// Rebuilds the file, so that nothing of what was deleted is left in it. Returns whether that is so: while another process reads
    /// the file, its log keeps what that process sees.
    pub fn rebuild(&self) -> Result<bool> {
        self.require_room()?;
        faults::statement("VACUUM");
        self.connection
            .execute_batch("VACUUM")
            .and_then(|()| self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0)))
            .map(|busy| busy == 0)
            .map_err(|e| diagnose(e, "rebuilding the object store").hint(STILL_THERE))
    }
}
