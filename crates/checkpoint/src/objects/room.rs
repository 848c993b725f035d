//! Room on the disk, known before it is needed.

use std::path::Path;

use ic_base::{Code, Diagnosis, Result};

/// What is left free for the others on the disk, the ledger above all: the row that names what was kept comes after it.
pub(super) const MARGIN: u64 = 512 << 10;

/// The bytes that this user may still write where `path` lies; `None` where that is not told.
pub fn free_bytes(path: &Path) -> Option<u64> {
    // The directory is asked, because the file itself may not be there yet.
    let stat = rustix::fs::statvfs(path.parent().unwrap_or(Path::new("/"))).ok()?;
    // `f_bfree` would also count blocks that only root may use.
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Errors: `disk_full`, saying how much is missing, if `needed` bytes have no room where `path` lies.
pub fn require_room(path: &Path, needed: u64, what: &str) -> Result<()> {
    match free_bytes(path) {
        Some(free) if free < needed.saturating_add(MARGIN) => {
            Err(too_little(path, needed.saturating_add(MARGIN), free, what))
        }
        // Where the system does not tell, SQLite does once the disk is full.
        _ => Ok(()),
    }
}

/// The error that says how much room is missing.
pub(super) fn too_little(path: &Path, needed: u64, free: u64, what: &str) -> Diagnosis {
    let missing = needed.saturating_sub(free);
    let place = path.parent().unwrap_or(path).display();
    Diagnosis::new(
        Code::DiskFull,
        format!(
            "{what} needs {} of room in {place}, and {} are free: {} are missing.",
            in_units(needed),
            in_units(free),
            in_units(missing)
        ),
    )
    .hint("free that much, or prune old checkpoints: ic checkpoint prune; then see whether anything is unfinished: ic status")
    .detail("needed_bytes", needed)
    .detail("free_bytes", free)
    .detail("missing_bytes", missing)
}

/// Bytes as people read them, rounded up: what is missing must not be understated.
fn in_units(bytes: u64) -> String {
    // The number is in tenths of the unit, for one decimal.
    let of = |unit: u64| bytes.div_ceil(unit / 10);
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} kB", bytes.div_ceil(1_000)),
        1_000_000..1_000_000_000 => format!("{}.{} MB", of(1_000_000) / 10, of(1_000_000) % 10),
        _ => format!("{}.{} GB", of(1_000_000_000) / 10, of(1_000_000_000) % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::in_units;

    #[test]
    fn sizes_are_never_understated() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (1_001, "2 kB"),
            (1_000_000, "1.0 MB"),
            (7_150_001, "7.2 MB"),
            (1_000_000_000, "1.0 GB"),
        ] {
            assert_eq!(in_units(bytes), text);
        }
    }
}
