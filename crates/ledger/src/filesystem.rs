//! Which file systems can hold a ledger: a write-ahead log needs shared memory that network and
//! shared file systems do not give (<https://sqlite.org/wal.html>).

use std::path::Path;

use ic_base::{Code, Diagnosis, Result};

const UNSUPPORTED: &[&str] = &[
    "9p", "afpfs", "afs", "beegfs", "ceph", "cifs", "fuse.glusterfs", "fuse.sshfs", "gfs2", "lustre", "ncpfs", "nfs",
    "nfs4", "ocfs2", "smb3", "smbfs", "vboxsf", "virtiofs", "webdav",
];

/// Refuses a directory whose file system cannot hold a ledger. Errors: `unsupported_fs`.
pub(crate) fn check(directory: &Path) -> Result<()> {
    let directory = std::fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
    // Where the system does not say, nothing is refused.
    match ic_sys::file_systems::type_name(&directory) {
        Some(kind) if UNSUPPORTED.contains(&kind.as_str()) => Err(Diagnosis::new(
            Code::UnsupportedFs,
            format!("{} is on a {kind} file system, which cannot hold a ledger safely.", directory.display()),
        )
        .hint("keep the ledger on a local disk: ic init --store DIR")
        .detail("filesystem", kind)),
        _ => Ok(()),
    }
}
