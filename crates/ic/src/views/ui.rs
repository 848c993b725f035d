//! The page.

#![cfg_attr(not(feature = "ui"), allow(dead_code, reason = "the shape is documented in every build"))]

use crate::text::{style, styled};

shape! {
    /// Where the page is (`ui`).
    pub(crate) struct UiJson from (url: &str, port: u16, read_only: bool) {
        /// With the key that opens it: a secret.
        url: String = url.to_owned(),
        port: u16 = port,
        /// Nothing can be changed from it.
        read_only: bool = read_only,
    }
}

/// The address, and how it ends.
pub(crate) fn served(url: &str, read_only: bool) -> String {
    let what = if read_only { ", to look at only" } else { "" };
    let note =
        format!("the page of this project{what}; who has this address has your rights here. Ctrl-C ends it");
    format!("{}\n{}\n", styled(style::STRONG, url), styled(style::DIM, &note))
}
