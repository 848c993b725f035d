//! Limits idle connections: any local user can connect, and a process can have only a few connections.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::{Sleep, sleep};

/// How long the header of the first request may take to arrive.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// The most connections that wait for their header; if more come, the oldest is closed. A browser sends its header at once.
const MOST_WAITING: usize = 64;

/// A listener that closes connections without a request.
pub(crate) struct Bounded {
    inner: TcpListener,
    /// The connections that wait, oldest first. Dropping a sender closes its connection.
    waiting: VecDeque<oneshot::Sender<()>>,
}

impl Bounded {
    pub(crate) fn new(inner: TcpListener) -> Self {
        Self { inner, waiting: VecDeque::new() }
    }
}

impl Listener for Bounded {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let (stream, from) = Listener::accept(&mut self.inner).await;
        // Connections that have sent their header, or are gone, wait no more.
        self.waiting.retain(|one| !one.is_closed());
        if self.waiting.len() >= MOST_WAITING {
            self.waiting.pop_front();
        }
        let (sender, closed) = oneshot::channel();
        self.waiting.push_back(sender);
        // The receiver lives as long as the wait. So `is_closed` above is true for a header that came and for a connection
        // that is gone.
        let wait = Wait { closed, deadline: Box::pin(sleep(HEADER_TIMEOUT)), line_ends: 0 };
        (Connection { stream, wait: Some(wait) }, from)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }
}

/// A connection that is closed if no header comes.
pub(crate) struct Connection {
    stream: TcpStream,
    /// The wait for the first header; `None` once it has come.
    wait: Option<Wait>,
}

struct Wait {
    closed: oneshot::Receiver<()>,
    deadline: Pin<Box<Sleep>>,
    /// Line ends in a row: two end the header.
    line_ends: u8,
}

impl Wait {
    fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        Pin::new(&mut self.closed).poll(context).is_ready() || self.deadline.as_mut().poll(context).is_ready()
    }

    /// Whether the header ends within these bytes.
    fn ends_in(&mut self, bytes: &[u8]) -> bool {
        for byte in bytes {
            match byte {
                b'\n' => self.line_ends += 1,
                // A line ends with CR LF, or with LF alone.
                b'\r' => {}
                _ => self.line_ends = 0,
            }
            if self.line_ends == 2 {
                return true;
            }
        }
        false
    }
}

impl AsyncRead for Connection {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let connection = self.get_mut();
        // Polled before the stream, so that a connection that sends byte by byte is closed at its deadline, too.
        if connection.wait.as_mut().is_some_and(|wait| wait.is_over(context)) {
            return Poll::Ready(Err(ErrorKind::TimedOut.into()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut connection.stream).poll_read(context, buffer))?;
        if connection.wait.as_mut().is_some_and(|wait| wait.ends_in(&buffer.filled()[before..])) {
            // Only the first header is waited for. A client without the cookie gets no second request on its connection
            // (`routes::answer`), and one with it may keep the connection.
            connection.wait = None;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
