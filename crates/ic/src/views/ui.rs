//! The address of the page.

#![cfg_attr(not(feature = "ui"), allow(dead_code, reason = "the shape is documented in every build"))]

use crate::text::{style, styled};

shape! {
    /// The address of the page in the browser (`ui`).
    pub(crate) struct UiJson from (url: &str, port: u16, read_only: bool) {
        /// The address, with the key that opens the page: a secret.
        url: String = url.to_owned(),
        port: u16 = port,
        /// Whether nothing can be changed from the page.
        read_only: bool = read_only,
    }
}

/// The address, and how to end the page.
pub(crate) fn served(url: &str, read_only: bool) -> String {
    let what = if read_only { ", to look at only" } else { "" };
    let note = format!("the page of this project{what}; who has this address has your rights here. Ctrl-C ends it");
    format!("{}\n{}\n", styled(style::STRONG, url), styled(style::DIM, &note))
}
