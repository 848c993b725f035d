//! The pointer in a store to a ledger on a server: a file whose one line is its URL.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use ic_base::{Diagnose, Diagnosis, Result};

use crate::git_dirs::trim;
use crate::private;
use crate::regular_file::read_line;
use crate::server_url::ServerUrl;

/// Where the pointer of a store is.
pub(crate) fn path(store: &Path) -> PathBuf {
    store.join("remote")
}

/// The URL in a store; `None` if there is none. Errors: `invalid_value` for what is no URL of a ledger.
pub(crate) fn read(store: &Path) -> Result<Option<ServerUrl>> {
    let remote = path(store);
    match fs::metadata(&remote) {
        // Only if there is no link either: one that leads nowhere (an unmounted disk) must not make `init` begin another ledger.
        Err(e)
            if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
                && fs::symlink_metadata(&remote).is_err() =>
        {
            return Ok(None);
        }
        Err(e) => {
            let failed = Err(e).while_doing(|| format!("looking for {}", remote.display()));
            return failed.map_err(|error| private::with_bits(error, store));
        }
        Ok(_) => {}
    }
    let line = read_line(&remote).while_doing(|| format!("reading {}", remote.display()))?;
    let text = String::from_utf8_lossy(trim(&line)).into_owned();
    ServerUrl::parse(&text).map(Some).map_err(|error| {
        Diagnosis::new(error.code(), format!("{} holds no URL of a ledger: {}", remote.display(), error.message()))
            .hint("remove it, and name the ledger again: ic init --db URL")
            .detail("file", remote.to_string_lossy().into_owned())
    })
}
