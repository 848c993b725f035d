//! Writing content with its holes: what is all zero takes no room on the disk, as in the file that was captured.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

/// Holes begin and end at these: the size of a block on most file systems.
const BLOCK: usize = 4096;

/// A new file that is written from its beginning to its end; blocks of zeros are left out.
pub(super) struct Sparse<'f> {
    file: &'f File,
    /// How much of the content there was so far.
    length: u64,
    /// How far it was written.
    written: u64,
}

impl<'f> Sparse<'f> {
    /// Begins at the beginning of an empty file.
    pub(super) fn new(file: &'f File) -> Self {
        Self { file, length: 0, written: 0 }
    }

    /// Gives the file its length, which a hole at its end does not.
    pub(super) fn finish(self) -> io::Result<()> {
        // Most files end with what was written: for them this costs no call.
        if self.written < self.length { self.file.set_len(self.length) } else { Ok(()) }
    }
}

impl Write for Sparse<'_> {
    fn write(&mut self, content: &[u8]) -> io::Result<usize> {
        // Up to the next border of a block, then block by block; neighbours that are written go together.
        let into_block = usize::try_from(self.length % BLOCK as u64).unwrap_or(0);
        let mut next = (BLOCK - into_block).min(content.len());
        let (mut start, mut at) = (0, 0);
        while at < content.len() {
            if is_zero(&content[at..next]) {
                self.put(content, start, at)?;
                start = next;
            }
            at = next;
            next = (next + BLOCK).min(content.len());
        }
        self.put(content, start, at)?;
        self.length += content.len() as u64;
        Ok(content.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sparse<'_> {
    fn put(&mut self, content: &[u8], start: usize, end: usize) -> io::Result<()> {
        if start < end {
            self.file.write_all_at(&content[start..end], self.length + start as u64)?;
            self.written = self.length + end as u64;
        }
        Ok(())
    }
}

/// Whether every byte is 0. A byte is looked at first because most blocks begin with another one.
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    bytes.first().is_none_or(|first| *first == 0) && bytes.iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::MetadataExt;

    use super::Sparse;

    /// Writes `content` in parts of this length, and returns what the file holds and the bytes that it takes.
    fn written(content: &[u8], part: usize) -> (Vec<u8>, u64) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut sparse = Sparse::new(file.as_file());
        for part in content.chunks(part) {
            sparse.write_all(part).unwrap();
        }
        sparse.finish().unwrap();
        (std::fs::read(file.path()).unwrap(), file.as_file().metadata().unwrap().blocks() * 512)
    }

    #[test]
    fn content_is_the_same_however_it_comes() {
        let mut content = vec![0; 70_000];
        for range in [5_000..5_001, 12_288..16_384, 30_000..45_000] {
            content[range].fill(7);
        }
        for length in [0, 1, 4_095, 4_096, 4_097, 12_288, 16_384, 16_385, 40_000, 70_000] {
            for part in [1, 1_000, 4_096, 5_000, 65_536] {
                assert!(written(&content[..length], part).0 == content[..length], "{length} by {part}");
            }
        }
    }

    #[test]
    fn holes_take_no_room() {
        let mut content = vec![0; 8 << 20];
        content[4 << 20] = 1;
        let (read, room) = written(&content, 1 << 20);
        assert!(read == content);
        assert!(room <= 64 << 10, "{room} bytes on the disk");
    }
}
