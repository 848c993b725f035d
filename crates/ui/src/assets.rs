//! The files of the page: a stylesheet, a script and an icon. They are a part of the program; nothing is loaded from elsewhere.

use axum::http::header;
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

/// A file, with the name in its address.
pub(crate) struct Asset {
    pub(crate) name: &'static str,
    kind: &'static str,
    content: &'static str,
}

pub(crate) const STYLE: Asset =
    Asset { name: "style.css", kind: "text/css; charset=utf-8", content: include_str!("assets/style.css") };
pub(crate) const SCRIPT: Asset =
    Asset { name: "page.js", kind: "text/javascript; charset=utf-8", content: include_str!("assets/page.js") };
pub(crate) const ICON: Asset =
    Asset { name: "icon.svg", kind: "image/svg+xml", content: include_str!("assets/icon.svg") };

impl Asset {
    /// Its address. It changes with the content, so that a browser may keep the file for ever.
    pub(crate) fn address(&self) -> String {
        let hash = ic_ledger::events::hex(&Sha256::digest(self.content.as_bytes()).into());
        format!("/assets/{}?{}", self.name, &hash[..12])
    }

    /// The file of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        [STYLE, SCRIPT, ICON].into_iter().find(|asset| asset.name == name)
    }

    /// The response with the file.
    pub(crate) fn answer(&self) -> Response {
        let headers = [
            (header::CONTENT_TYPE, self.kind),
            // A year is safe, because a changed file has another address.
            (header::CACHE_CONTROL, "private, max-age=31536000, immutable"),
        ];
        (headers, self.content).into_response()
    }
}
