//! The page.

use ic_ui::Address;

use crate::text::{style, styled};

shape! {
    /// Where the page is (`ui`).
    pub(crate) struct UiJson from (address: &Address, read_only: bool) {
        /// With the key that opens it: a secret.
        url: String = address.url.clone(),
        port: u16 = address.port,
        /// Nothing can be changed from it.
        read_only: bool = read_only,
    }
}

/// The address, and how it ends.
pub(crate) fn served(address: &Address, read_only: bool) -> String {
    let what = if read_only { ", to look at only" } else { "" };
    let note =
        format!("the page of this project{what}; who has this address has your rights here. Ctrl-C ends it");
    format!("{}\n{}\n", styled(style::STRONG, &address.url), styled(style::DIM, &note))
}
