//! What a file system says of itself where there is no table of mounts.

use std::path::Path;

/// The name that macOS gives it.
#[cfg(target_vendor = "apple")]
pub(super) fn type_name(path: &Path) -> Option<String> {
    let found = rustix::fs::statfs(path).ok()?;
    let name = found.f_fstypename.iter().map(|byte| byte.cast_unsigned()).take_while(|byte| *byte != 0);
    Some(String::from_utf8_lossy(&name.collect::<Vec<u8>>()).into_owned())
}

/// The names of those that Linux has a number for, of statfs(2). What FUSE mounts has one number, whatever it is.
#[cfg(target_os = "linux")]
pub(super) fn type_name(path: &Path) -> Option<String> {
    const NAMES: [(u64, &str); 11] = [
        (0x0102_1997, "9p"),
        (0x5346_414F, "afs"),
        (0x6B41_4653, "afs"),
        (0x00C3_6400, "ceph"),
        (0xFF53_4D42, "cifs"),
        (0x0116_1970, "gfs2"),
        (0x0BD0_0BD0, "lustre"),
        (0x6969, "nfs"),
        (0x7461_636F, "ocfs2"),
        (0xFE53_4D42, "smb3"),
        (0x786F_4256, "vboxsf"),
    ];
    let number = u64::try_from(rustix::fs::statfs(path).ok()?.f_type).ok()?;
    NAMES.iter().find(|(known, _)| *known == number).map(|(_, name)| (*name).to_owned())
}

/// Other systems do not say.
#[cfg(not(any(target_vendor = "apple", target_os = "linux")))]
pub(super) fn type_name(_path: &Path) -> Option<String> {
    None
}
