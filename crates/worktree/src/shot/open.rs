//! A picture on its way into the store: what else is to become durable may join it.

use std::time::Instant;

use ic_base::Result;
use ic_checkpoint::capture::Seen;
use ic_checkpoint::objects::Writer;

use super::Shot;
use crate::workspace::Workspace;

/// A picture that nothing may name yet: its content is durable once it is closed, and gone if it is dropped.
pub(crate) struct Open<'w> {
    pub(crate) shot: Shot,
    /// `None`: it is durable.
    content: Option<Content<'w>>,
}

/// What a picture found.
struct Content<'w> {
    writer: Writer<'w>,
    seen: Seen,
    /// The store will have all that was seen.
    is_stored: bool,
}

impl<'w> Open<'w> {
    /// `is_stored`: the store will have all that was seen.
    pub(super) fn new(shot: Shot, (writer, seen): (Writer<'w>, Seen), is_stored: bool) -> Self {
        Self { shot, content: Some(Content { writer, seen, is_stored }) }
    }
}

impl From<Shot> for Open<'_> {
    fn from(shot: Shot) -> Self {
        Self { shot, content: None }
    }
}

impl Workspace<'_> {
    /// Makes what a picture found durable. Errors: `disk_full`: nothing may name it.
    pub(crate) fn close(&self, open: Open<'_>) -> Result<Shot> {
        self.close_with(open, &[]).map(|(shot, _)| shot)
    }

    /// As [`Workspace::close`], and these contents with it, in one transaction; returns their hashes, too.
    pub(crate) fn close_with(
        &self,
        open: Open<'_>,
        contents: &[&[u8]],
    ) -> Result<(Shot, Vec<ic_events::Hash>)> {
        let started = Instant::now();
        let Open { mut shot, content } = open;
        let (writer, seen) = match content {
            Some(Content { writer, seen, is_stored }) => (writer, Some((seen, is_stored))),
            None => (self.objects.writer(self.kernel.context.now())?, None),
        };
        let put = |bytes: &&[u8]| writer.put_reader(&mut &**bytes).map(|(hash, _)| hash);
        let hashes = contents.iter().map(put).collect::<Result<_>>()?;
        let stored = writer.finish()?;
        if let Some((seen, is_stored)) = seen {
            shot.captured.stored = stored;
            seen.keep_if(is_stored)?;
            ic_store::reserve::keep(self.kernel.ledger.path());
            shot.took += started.elapsed();
        }
        Ok((shot, hashes))
    }
}
