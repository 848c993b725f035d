//! A network in between: it has a delay, counts round trips, and breaks where it is told to.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ic_testkit::Cluster;

/// How a connection breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Break {
    /// What the client sends does not arrive.
    Before,
    /// It arrives, and its answer does not come back.
    After,
}

/// Where the next break is.
#[derive(Debug, Clone, Copy)]
enum Plan {
    AtCommit(Break),
    /// At the n-th round trip from now on, counted from 1.
    AtTrip(usize, Break),
}

#[derive(Default)]
struct Shared {
    next: Mutex<Option<Plan>>,
    trips: AtomicUsize,
    /// No connection is made after the break.
    closes: AtomicBool,
}

pub(crate) struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

impl Proxy {
    /// A way to a server that takes so long in each direction.
    pub(crate) fn to(cluster: &Cluster, delay: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let shared = Arc::new(Shared::default());
        let (socket, its) = (cluster.socket().join(".s.PGSQL.5432"), shared.clone());
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if its.closes.load(Ordering::Relaxed) && its.next.lock().expect("the plan").is_none() {
                    continue;
                }
                let Ok(server) = UnixStream::connect(&socket) else { continue };
                carry(client, server, delay, &its);
            }
        });
        Self { port, shared }
    }

    /// The URL of a ledger by this way.
    pub(crate) fn url(&self, ledger: &str) -> String {
        format!("postgres://ic@127.0.0.1:{}/postgres?ledger={ledger}", self.port)
    }

    /// The next commit breaks the connection, once.
    pub(crate) fn break_next_commit(&self, how: Break) {
        *self.shared.next.lock().expect("the plan") = Some(Plan::AtCommit(how));
    }

    /// The n-th round trip from now on breaks the connection, once.
    pub(crate) fn break_trip(&self, n: usize, how: Break) {
        *self.shared.next.lock().expect("the plan") = Some(Plan::AtTrip(n, how));
    }

    /// After the break no connection is made any more.
    pub(crate) fn close_after_break(&self) {
        self.shared.closes.store(true, Ordering::Relaxed);
    }

    /// Whether what was planned has happened.
    pub(crate) fn has_broken(&self) -> bool {
        self.shared.next.lock().expect("the plan").is_none()
    }

    /// How often a client sent something after an answer, since it was asked last; a connection itself is one of them.
    pub(crate) fn trips(&self) -> usize {
        self.shared.trips.swap(0, Ordering::Relaxed)
    }
}

impl Shared {
    /// The break that is planned for what the client sends now; from now on none is planned.
    fn due(&self, begins_trip: bool, commits: bool) -> Option<Break> {
        let mut plan = self.next.lock().expect("the plan");
        let how = match plan.as_mut()? {
            Plan::AtCommit(how) => commits.then_some(*how),
            Plan::AtTrip(left, how) => {
                *left -= usize::from(begins_trip);
                (*left == 0).then_some(*how)
            }
        };
        if how.is_some() {
            *plan = None;
        }
        how
    }
}

fn carry(client: TcpStream, server: UnixStream, delay: Duration, shared: &Arc<Shared>) {
    client.set_nodelay(true).expect("no delay of its own");
    let spoke = Arc::new(AtomicBool::new(true));
    let is_mute = Arc::new(AtomicBool::new(false));
    let (from_client, to_server) = (client.try_clone().expect("a handle"), server.try_clone().expect("a handle"));
    let (its, heard) = (shared.clone(), spoke.clone());
    let sent = on_its_way(from_client.try_clone().expect("a handle"), move |bytes| {
        // A goodbye waits for no answer.
        let is_goodbye = bytes == [b'X', 0, 0, 0, 4];
        let begins_trip = !is_goodbye && heard.swap(false, Ordering::Relaxed);
        its.trips.fetch_add(usize::from(begins_trip), Ordering::Relaxed);
        begins_trip
    });
    let (its, mutes) = (shared.clone(), is_mute.clone());
    std::thread::spawn(move || forward(&sent, delay, &from_client, to_server, &its, &mutes));
    let (answered, mut to_client) = (on_its_way(server, |_| false), client);
    std::thread::spawn(move || {
        while let Ok(part) = answered.recv() {
            part.arrive(delay);
            spoke.store(true, Ordering::Relaxed);
            if is_mute.load(Ordering::Relaxed) || to_client.write_all(&part.bytes).is_err() {
                break;
            }
        }
        let _ = to_client.shutdown(Shutdown::Both);
    });
}

/// What was sent at once, as it leaves.
struct Part {
    left: Instant,
    bytes: Vec<u8>,
    begins_trip: bool,
}

impl Part {
    /// Waits until it is there.
    fn arrive(&self, delay: Duration) {
        std::thread::sleep((self.left + delay).saturating_duration_since(Instant::now()));
    }
}

/// What comes from an end, once it was sent: as in a network, what is in transit delays nothing that follows. If it did, the last part
/// of much that was sent together would seem to have waited for the answer to the first part.
fn on_its_way(
    mut from: impl Read + Send + 'static,
    begins_trip: impl Fn(&[u8]) -> bool + Send + 'static,
) -> Receiver<Part> {
    let (sends, receives) = channel();
    std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            let bytes = buffer[..length].to_vec();
            let begins_trip = begins_trip(&bytes);
            if sends.send(Part { left: Instant::now(), bytes, begins_trip }).is_err() {
                break;
            }
        }
    });
    receives
}

/// Hands on to the server what the client sends, up to a break that is due.
fn forward(
    sent: &Receiver<Part>,
    delay: Duration,
    client: &TcpStream,
    mut server: UnixStream,
    shared: &Shared,
    mutes: &AtomicBool,
) {
    while let Ok(mut part) = sent.recv() {
        part.arrive(delay);
        // A break takes all that was sent together.
        for more in sent.try_iter() {
            part.bytes.extend(more.bytes);
            part.begins_trip |= more.begins_trip;
        }
        let commits = part.bytes.windows(7).any(|window| window == b"COMMIT\0");
        let how = shared.due(part.begins_trip, commits);
        mutes.store(how.is_some(), Ordering::Relaxed);
        if how != Some(Break::Before) && server.write_all(&part.bytes).is_err() {
            break;
        }
        if how.is_some() {
            // Long enough for the server to carry it out.
            let _ = client.shutdown(Shutdown::Read);
            std::thread::sleep(Duration::from_millis(100));
            let _ = client.shutdown(Shutdown::Both);
            break;
        }
    }
    let _ = server.shutdown(Shutdown::Both);
}
