//! The connection that a closed ledger leaves to the next one. A process that opens the same ledger many times would spend more time on
//! connecting than on its work.
//!
//! One is kept at most, between transactions, and for a short time: a server has few connections, and none of them may be in the way of its
//! vacuum.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio_postgres::Client;

use crate::faults;
use crate::server_url::ServerUrl;

/// How long a connection is kept that is not asked for.
const KEPT_FOR: Duration = Duration::from_secs(10);

static KEEPS: AtomicBool = AtomicBool::new(false);
static KEPT: Mutex<Option<Kept>> = Mutex::new(None);
static IS_KEPT: Condvar = Condvar::new();
static CLOSER: Once = Once::new();

/// A connection, and what it lives in.
pub(super) struct KeptConnection {
    pub(super) client: Arc<Client>,
    pub(super) runtime: Arc<Runtime>,
}

struct Kept {
    url: ServerUrl,
    since: Instant,
    link: KeptConnection,
}

/// From now on a ledger on a server that is closed leaves its connection to the next one of the same URL in this process, for ten seconds.
/// For a process that opens a ledger for each of many calls.
pub fn keep_connections() {
    KEEPS.store(true, Ordering::Relaxed);
}

/// The connection that a ledger of this URL left. It may be lost since: that shows when it is used, as with any other.
pub(super) fn take(url: &ServerUrl) -> Option<KeptConnection> {
    let kept = kept().take_if(|kept| kept.url == *url)?;
    Some(kept.link)
}

/// Leaves a connection, between transactions or where `dangles` in one that only read, to the next ledger; or closes it.
pub(super) fn leave(url: &ServerUrl, link: KeptConnection, dangles: bool) {
    // A thread that panics may leave an open transaction on the connection.
    if !KEEPS.load(Ordering::Relaxed) || std::thread::panicking() || link.client.is_closed() {
        return link.close();
    }
    if dangles {
        link.end_transaction();
    }
    CLOSER.call_once(|| {
        let closer = std::thread::Builder::new().name("ic-kept".to_owned());
        // If the thread cannot be made, the connection stays until the next call or the end of the process.
        let _ = closer.spawn(close_when_idle);
    });
    // The lock ends with this statement: other calls must not wait while the former connection is closed.
    let before = kept().replace(Kept { url: url.clone(), since: Instant::now(), link });
    IS_KEPT.notify_one();
    if let Some(before) = before {
        before.link.close();
    }
}

fn kept() -> MutexGuard<'static, Option<Kept>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Closes a kept connection once it has not been asked for within [`KEPT_FOR`].
fn close_when_idle() {
    let mut slot = kept();
    loop {
        let left = slot.as_ref().map(|kept| KEPT_FOR.saturating_sub(kept.since.elapsed()));
        match left {
            None => slot = IS_KEPT.wait(slot).unwrap_or_else(PoisonError::into_inner),
            Some(Duration::ZERO) => {
                let idle = slot.take();
                // Closing sends a message and may take a while: the lock is not held during that.
                drop(slot);
                if let Some(idle) = idle {
                    idle.link.close();
                }
                slot = kept();
            }
            Some(left) => slot = IS_KEPT.wait_timeout(slot, left).unwrap_or_else(PoisonError::into_inner).0,
        }
    }
}

impl KeptConnection {
    /// Ends a transaction that only read. Its answer is not waited for.
    fn end_transaction(&self) {
        faults::statement("ROLLBACK");
        self.runtime.block_on(async {
            let _ = tokio::time::timeout(Duration::ZERO, self.client.batch_execute("ROLLBACK")).await;
            sent().await;
        });
    }

    /// The connection says goodbye, which ends what it had begun, and is closed.
    fn close(self) {
        drop(self.client);
        self.runtime.block_on(sent());
    }
}

/// Lets the connection send what it was given.
async fn sent() {
    tokio::task::yield_now().await;
    tokio::task::yield_now().await;
}
