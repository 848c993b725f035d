//! The table of mounts of Linux (proc(5)).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub(super) fn type_name(path: &Path) -> Option<String> {
    type_of(path, &std::fs::read("/proc/self/mountinfo").ok()?)
}

/// The type of the file system that holds `path`, by the text of `/proc/self/mountinfo` (see proc(5)).
fn type_of(path: &Path, mountinfo: &[u8]) -> Option<String> {
    let mut best: Option<(usize, String)> = None;
    for line in mountinfo.split(|b| *b == b'\n') {
        // `40 22 0:35 / /mnt/vm rw,relatime shared:2 - nfs4 host:/export rw`: the fifth field is the mount point.
        // The number of fields after the options varies, so the type is found by the dash before it.
        let fields: Vec<&[u8]> = line.split(|b| *b == b' ').collect();
        let Some(separator) = fields.iter().position(|f| *f == b"-") else {
            continue;
        };
        let (Some(point), Some(kind)) = (fields.get(4), fields.get(separator + 1)) else {
            continue;
        };
        let point = Path::new(OsStr::from_bytes(&unescape(point))).to_owned();
        // `>=`: a later mount on the same point covers the earlier one.
        if path.starts_with(&point) && best.as_ref().is_none_or(|(n, _)| point.as_os_str().len() >= *n) {
            best = Some((point.as_os_str().len(), String::from_utf8_lossy(kind).into_owned()));
        }
    }
    best.map(|(_, kind)| kind)
}

/// Mount points stand with `\040` for a space, and likewise for tab, newline and backslash.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, tail)) = rest.split_first() {
        if byte == b'\\'
            && let Some(code) = tail.get(..3).and_then(|d| std::str::from_utf8(d).ok())
            && let Ok(value) = u8::from_str_radix(code, 8)
        {
            out.push(value);
            rest = &tail[3..];
        } else {
            out.push(byte);
            rest = tail;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::type_of;

    const MOUNTS: &[u8] = b"22 1 259:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n\
        40 22 0:35 / /mnt/my\\040share rw,relatime shared:2 - nfs4 host:/export rw\n\
        41 22 0:36 / /mnt/vm rw - virtiofs tag rw\n";

    #[test]
    fn the_deepest_mount_decides() {
        let at = |path: &str| type_of(Path::new(path), MOUNTS).unwrap();
        assert_eq!(at("/home/me"), "ext4");
        assert_eq!(at("/mnt/my share/project"), "nfs4");
        assert_eq!(at("/mnt/vm"), "virtiofs");
        assert_eq!(at("/mnt/vmware"), "ext4");
    }
}
