//! Images of checkpoints. An image is named by the hash of its content, never by a path, and any other content is refused.

use std::io::{self, Write};

use axum::http::header;
use axum::response::{IntoResponse, Response};
use ic_base::{Code, Diagnosis, Result};
use ic_checkpoint::diff::{DiffState, Difference};
use ic_ledger::events::{hex, parse_hex};
use ic_worktree::contents::Contents;
use maud::{Markup, html};

use crate::app::PageApp;
use crate::headers::POLICY_OF_CONTENT;
use crate::text::size;

/// The largest image that is shown, in bytes.
pub(crate) const LARGEST: u64 = 12 << 20;

/// The media type of an image, by its first bytes. SVG is not among the types, because it can contain scripts.
pub(crate) fn kind(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// Both sides of a difference, if one is an image; else `None`.
pub(crate) fn seen(contents: Contents<'_>, difference: &Difference) -> Result<Option<Markup>> {
    if contents.is_gone(difference)? {
        return Ok(None);
    }
    let (old, new) = (contents.older(difference)?, contents.newer(difference)?);
    let images = [(&difference.before, &old), (&difference.after, &new)];
    is_among(&images).then(|| pictures(contents, images)).transpose()
}

/// Whether one of the sides of a difference is an image.
pub(crate) fn is_among(sides: &[(&Option<DiffState>, &Option<Vec<u8>>); 2]) -> bool {
    sides.iter().any(|(_, content)| content.as_ref().is_some_and(|bytes| kind(bytes).is_some()))
}

/// The two sides of a difference as pictures.
pub(crate) fn pictures(contents: Contents<'_>, sides: [(&Option<DiffState>, &Option<Vec<u8>>); 2]) -> Result<Markup> {
    let mut drawn = Vec::new();
    for ((state, content), name) in sides.into_iter().zip(["Before", "After"]) {
        let Some(DiffState::File { hash, size: bytes, .. }) = state else { continue };
        let is_image = content.as_ref().is_some_and(|bytes| kind(bytes).is_some());
        // An image of the working tree is in no checkpoint yet, so it cannot be asked for by its hash.
        let is_kept = contents.objects.has(hash)?;
        drawn.push(html! {
            figure {
                figcaption { (name) span.quiet { " " (size(*bytes)) } }
                @if is_image && is_kept { img src={ "/image/" (hex(hash)) } alt={ (name) ", as the checkpoint has it" } loading="lazy"; }
                @else if is_image { p.quiet { "It is in no checkpoint yet." } }
                @else { p.quiet { "No image." } }
            }
        });
    }
    Ok(html! { div.pictures { @for one in &drawn { (one) } } })
}

/// The response with the image of this hash.
pub(crate) fn answer(app: &PageApp, hash: &str) -> Response {
    match read(app, hash) {
        Ok((kind, bytes)) => {
            let headers = [(header::CONTENT_TYPE, kind), (header::CONTENT_SECURITY_POLICY, POLICY_OF_CONTENT)];
            (headers, bytes).into_response()
        }
        Err(error) => (crate::fail::status(&error), "There is no such image.").into_response(),
    }
}

fn read(app: &PageApp, hash: &str) -> Result<(&'static str, Vec<u8>)> {
    let missing = || Diagnosis::new(Code::PathNotFound, "There is no such image.");
    let hash = parse_hex(hash).ok_or_else(missing)?;
    let kernel = app.project.kernel()?;
    let objects = ic_worktree::look_into_store(&kernel, app.project.options())?.ok_or_else(missing)?;
    let mut sink = Bounded(Vec::new());
    // The content may be damaged, purged, too large or never have been there: the answer is the same, and tells nothing about the store.
    objects.read_to(&hash, &mut sink).map_err(|_| missing())?;
    // Any other content is refused, even with the right hash: this address is for images alone.
    let kind = kind(&sink.0).ok_or_else(missing)?;
    Ok((kind, sink.0))
}

/// Takes bytes up to the limit of an image.
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The bytes are counted as they come: an address names a hash, and tells no size.
        if (self.0.len() + bytes.len()) as u64 > LARGEST {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::kind;

    #[test]
    fn only_images_without_scripts_are_images() {
        assert_eq!(kind(b"\x89PNG\r\n\x1a\n...."), Some("image/png"));
        assert_eq!(kind(b"GIF89a..."), Some("image/gif"));
        assert_eq!(kind(b"RIFF\0\0\0\0WEBPVP8 "), Some("image/webp"));
        assert_eq!(kind(&[0xff, 0xd8, 0xff, 0xe0]), Some("image/jpeg"));
        for bad in
            [&b"<svg xmlns=\"http://www.w3.org/2000/svg\"><script/></svg>"[..], b"<!doctype html>", b"", b"%PDF-1.7"]
        {
            assert_eq!(kind(bad), None);
        }
    }
}
