//! The log of one command: appended to a file as it comes, and kept within bounds.
//!
//! Up to its bound, output is appended unchanged. Beyond it the first half stays; after it stand a line that says
//! how much is left out, and the latest output. That grows until it is twice too long and is then cut to its last
//! half, so that each byte is moved at most once, nothing is held in memory, and the file can be read in its
//! order at any time. While the command runs the log may be half as long again as its bound, plus 64 KiB.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use ic_base::{Diagnose, Diagnosis, Result};

/// A shorter cut would move more bytes than it saves.
const SHORTEST_CUT: u64 = 64 * 1024;
// How much is moved at a time when the log is cut.
const CHUNK: usize = 64 * 1024;

pub(super) struct CommandLog {
    path: PathBuf,
    /// None after the first error.
    file: Option<File>,
    error: Option<Diagnosis>,
    /// Where in the file this run's output begins.
    base: u64,
    /// How long this run's part of the file is.
    length: u64,
    /// How much was appended, kept or not.
    total: u64,
    longest: u64,
}

impl CommandLog {
    /// Opens the file at its end, or makes it, with mode 0600. Errors are kept for [`CommandLog::finish`].
    pub(super) fn append_to(path: &Path, longest: u64) -> Self {
        let mut log = Self { path: path.to_owned(), file: None, error: None, base: 0, length: 0, total: 0, longest };
        match log.open() {
            Ok((file, base)) => (log.file, log.base) = (Some(file), base),
            Err(error) => log.error = Some(error),
        }
        log
    }

    /// Appends. After an error nothing more is written, so that what is there has no gap.
    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let head = self.longest / 2;
        let slack = (self.longest - head).max(SHORTEST_CUT);
        self.write(|log, file| {
            file.write_all_at(bytes, log.base + log.length)?;
            log.length += bytes.len() as u64;
            if log.length > log.longest.saturating_add(slack) { log.cut(file) } else { Ok(()) }
        });
    }

    /// Cuts the log to its bound. Returns the first error that anything of it had.
    pub(super) fn finish(mut self) -> Option<Diagnosis> {
        if self.total > self.longest {
            self.write(Self::cut);
        }
        self.error
    }

    fn open(&self) -> Result<(File, u64)> {
        let doing = || format!("opening the log {}", self.path.display());
        // O_APPEND is not set: on Linux it makes pwrite(2) ignore its offset, and a cut writes in the middle.
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&self.path)
            .while_doing(doing)?;
        let metadata = file.metadata().while_doing(doing)?;
        // A log may be a device, such as /dev/null, whose mode belongs to the system.
        if metadata.is_file() && metadata.permissions().mode() & 0o7777 != 0o600 {
            file.set_permissions(Permissions::from_mode(0o600)).while_doing(doing)?;
        }
        Ok((file, metadata.len()))
    }

    fn write(&mut self, change: impl FnOnce(&mut Self, &File) -> io::Result<()>) {
        let Some(file) = self.file.take() else { return };
        // Taken out first: after an error there is no file, and nothing is written any more.
        match change(self, &file).while_doing(|| format!("writing the log {}", self.path.display())) {
            Ok(()) => self.file = Some(file),
            Err(error) => self.error = Some(error),
        }
    }

    fn cut(&mut self, file: &File) -> io::Result<()> {
        //     base                                            base + length
        //       │ first half │ what is too much │ last half │
        //       │ first half │ line │ last half │
        //
        // It is called only after more than `longest` was appended, so the difference in the line is not negative.
        let head = self.longest / 2;
        let tail = self.longest - head;
        let line = format!("\n[... {} bytes left out ...]\n", self.total - self.longest);
        let kept_at = head + line.len() as u64;
        // The tail is moved before the line is written, because the line may lie where the tail was.
        shift(file, self.base + self.length - tail, self.base + kept_at, tail)?;
        file.write_all_at(line.as_bytes(), self.base + head)?;
        self.length = kept_at + tail;
        file.set_len(self.base + self.length)
    }
}

/// Moves a part of the file, which may overlap its new place.
fn shift(file: &File, from: u64, to: u64, length: u64) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    let mut moved = 0;
    while moved < length {
        let count = (length - moved).min(CHUNK as u64);
        // What is yet to be moved must not be written over.
        let at = if to <= from { moved } else { length - moved - count };
        let part = &mut chunk[..usize::try_from(count).unwrap_or(CHUNK)];
        file.read_exact_at(part, from + at)?;
        file.write_all_at(part, to + at)?;
        moved += count;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use ic_base::Code;

    use super::CommandLog;

    fn bytes(length: usize) -> Vec<u8> {
        (0..length).map(|i| u8::try_from((i * 7 + i / 251) % 256).unwrap()).collect()
    }

    fn logged(file: &Path, longest: u64, output: &[u8], chunk: usize) -> Vec<u8> {
        let before = fs::read(file).unwrap_or_default();
        let mut log = CommandLog::append_to(file, longest);
        output.chunks(chunk).for_each(|chunk| log.append(chunk));
        assert!(log.finish().is_none());
        let all = fs::read(file).unwrap();
        assert!(all.starts_with(&before));
        all[before.len()..].to_vec()
    }

    #[test]
    fn the_first_and_the_last_half_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("log");
        for longest in [0, 1, 2, 10, 999, 1000, 150_000, 200_001] {
            for length in [0, 1, 2, 3, 9, 10, 11, 12, 1000, 1001, 1040, 66_000, 150_001, 401_000, 1_000_000] {
                for chunk in [1 + length / 50, 4096, 65_536] {
                    let output = bytes(length);
                    let expected = if length <= longest {
                        output.clone()
                    } else {
                        let line = format!("\n[... {} bytes left out ...]\n", length - longest);
                        let (head, tail) = (longest / 2, longest - longest / 2);
                        [&output[..head], line.as_bytes(), &output[length - tail..]].concat()
                    };
                    let kept = logged(&file, longest as u64, &output, chunk);
                    assert!(kept == expected, "{length} bytes by {chunk} in {longest}");
                }
            }
        }
    }

    #[test]
    fn while_it_runs_the_log_is_bounded_and_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("log");
        let mut log = CommandLog::append_to(&file, 400_000);
        let output = bytes(3_000_000);
        let mut written = 0;
        for chunk in output.chunks(50_000) {
            log.append(chunk);
            written += chunk.len();
            let now = fs::read(&file).unwrap();
            assert!(now.len() <= 600_100);
            assert!(now.ends_with(&output[written.saturating_sub(200_000)..written]));
        }
    }

    #[test]
    fn the_log_is_private_even_if_it_was_not() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("log");
        fs::write(&file, "before\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o664)).unwrap();
        assert_eq!(logged(&file, 100, b"after", 100), b"after");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o600);
    }

    #[test]
    fn no_bound_is_a_bound_too() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(logged(&directory.path().join("log"), u64::MAX, &bytes(300_000), 9999), bytes(300_000));
    }

    #[test]
    fn errors_are_kept_and_nothing_is_written_after_them() {
        let directory = tempfile::tempdir().unwrap();
        let mut log = CommandLog::append_to(&directory.path().join("none/log"), 100);
        log.append(b"lost");
        let error = log.finish().unwrap();
        assert!(error.message().starts_with("opening the log"), "{error}");

        if Path::new("/dev/full").exists() {
            let mut log = CommandLog::append_to(Path::new("/dev/full"), 100);
            log.append(b"lost");
            log.append(b"lost");
            assert_eq!(log.finish().unwrap().code(), Code::DiskFull);
        }
    }
}
