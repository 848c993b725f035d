//! `/proc/PID/maps`, see proc(5).

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::makedev;

/// Device and inode of every file that a process has mapped shared; `None` where no process can be seen at all.
///
/// Maps that cannot be written now count too: they may have been, with their pages still writable in all but name.
pub(super) fn mapped(proc: &Path) -> Option<HashSet<(u64, u64)>> {
    // If this process cannot read its own maps, there is no `/proc` to ask.
    let own = proc.join("self/maps");
    File::open(own).ok()?;
    let mut files = HashSet::new();
    let mut maps = Vec::new();
    for entry in std::fs::read_dir(proc).ok()?.flatten() {
        // In `/proc` only processes have numbers for names.
        if !entry.file_name().as_bytes().iter().all(u8::is_ascii_digit) {
            continue;
        }
        maps.clear();
        // A process that has ended since stores nothing any more; the maps of another user's process cannot be read.
        let read = File::open(entry.path().join("maps")).and_then(|mut file| file.read_to_end(&mut maps));
        if read.is_ok() {
            maps.split(|byte| *byte == b'\n').filter_map(shared).for_each(|found| add(found, &mut files));
        }
    }
    Some(files)
}

/// A shared map of a file, as a line says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shared<'l> {
    device: u64,
    inode: u64,
    path: &'l [u8],
}

/// `7f8f63a48000-7f8f63a58000 rw-s 00000000 fe:00 10010742                   /tmp/x.mm`
fn shared(line: &[u8]) -> Option<Shared<'_>> {
    let mut fields = line.splitn(6, |byte| *byte == b' ');
    if fields.nth(1)?.get(3) != Some(&b's') {
        return None;
    }
    let mut text = || std::str::from_utf8(fields.next()?).ok();
    let (_offset, device, inode) = (text()?, text()?, text()?);
    let (major, minor) = device.split_once(':')?;
    let number = |hex| u32::from_str_radix(hex, 16).ok();
    let path = fields.next().unwrap_or_default().trim_ascii_start();
    Some(Shared { device: makedev(number(major)?, number(minor)?), inode: inode.parse().ok()?, path })
}

fn add(found: Shared<'_>, files: &mut HashSet<(u64, u64)>) {
    // 0 is memory without a file. A file that was found before needs no second look.
    if found.inode == 0 || !files.insert((found.device, found.inode)) || !found.path.starts_with(b"/") {
        return;
    }
    // On Btrfs and overlays a map's device is not the one that stat says, so the path is asked too.
    if let Ok(stat) = rustix::fs::stat(found.path) {
        files.insert((crate::stat::device(&stat), stat.st_ino));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn shared_maps_of_files_are_read_from_their_lines() {
        let line = b"7f8f63a48000-7f8f63a58000 rw-s 00000000 fe:0a 10010742                   /tmp/a b (deleted)";
        let found = Shared { device: makedev(0xfe, 10), inode: 10_010_742, path: b"/tmp/a b (deleted)" };
        assert_eq!(shared(line), Some(found));
        let private = b"7f8f63a48000-7f8f63a58000 rw-p 00000000 fe:0a 10010742                   /tmp/a";
        for other in [&private[..], b"", b"x", b"0-1 rw-s", b"0-1 rw-s 0 zz:1 1 /a", b"0-1 rw-s 0 1:1 x /a"] {
            assert_eq!(shared(other), None, "{}", String::from_utf8_lossy(other));
        }
    }

    #[test]
    fn processes_that_cannot_be_seen_are_told_from_none_that_map() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(mapped(place.path()), None);
        let file = place.path().join("mapped");
        std::fs::write(&file, "content").unwrap();
        let meta = std::fs::metadata(&file).unwrap();
        for process in ["self", "17", "18"] {
            std::fs::create_dir(place.path().join(process)).unwrap();
            std::fs::write(place.path().join(process).join("maps"), "0-1 rw-p 00 00:00 0\n").unwrap();
        }
        assert_eq!(mapped(place.path()), Some(HashSet::new()));
        // The device that stat says is found by the path, whatever the map's own.
        let line = format!("0-1 r--s 00000000 00:07 {}          {}\n", meta.ino(), file.display());
        std::fs::write(place.path().join("18/maps"), line).unwrap();
        let found = mapped(place.path()).unwrap();
        assert!(found.contains(&(meta.dev(), meta.ino())) && found.contains(&(7, meta.ino())), "{found:?}");
    }
}
