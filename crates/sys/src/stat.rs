//! The numbers of a stat, in one width on every system.

use rustix::fs::{Mode, RawMode, Stat};

/// The device that a file lies on, as `std::os::unix::fs::MetadataExt::dev` gives it.
#[must_use]
#[allow(clippy::unnecessary_cast, clippy::cast_sign_loss, reason = "the widths differ between systems")]
pub fn device(stat: &Stat) -> u64 {
    stat.st_dev as u64
}

/// The kind of a file and its permission bits.
#[must_use]
#[allow(clippy::useless_conversion, reason = "the widths differ between systems")]
pub fn mode(stat: &Stat) -> u32 {
    stat.st_mode.into()
}

/// How many names a file has.
#[must_use]
#[allow(clippy::useless_conversion, reason = "the widths differ between systems")]
pub fn names(stat: &Stat) -> u64 {
    stat.st_nlink.into()
}

/// When the content of a file changed: seconds and nanoseconds.
#[must_use]
pub fn content_changed(stat: &Stat) -> (i64, u64) {
    (stat.st_mtime, nanoseconds(stat.st_mtime_nsec))
}

/// When the inode of a file changed: seconds and nanoseconds.
#[must_use]
pub fn inode_changed(stat: &Stat) -> (i64, u64) {
    (stat.st_ctime, nanoseconds(stat.st_ctime_nsec))
}

fn nanoseconds(part: impl TryInto<u64>) -> u64 {
    part.try_into().unwrap_or(0)
}

/// These permission bits (07777), as system calls take them.
#[must_use]
pub fn permissions(bits: u32) -> Mode {
    // 07777 fits into every width.
    Mode::from_raw_mode(RawMode::try_from(bits & 0o7777).unwrap_or_default())
}
