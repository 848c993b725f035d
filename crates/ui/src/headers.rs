//! What every answer says to the browser beside its content.

use axum::http::{HeaderMap, HeaderValue, header};

/// Nothing but our own files is loaded, no other page frames this one, and no form of it goes elsewhere.
const POLICY: &str =
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// An image of a checkpoint is nothing but an image, also where it is opened by itself.
pub(crate) const POLICY_OF_CONTENT: &str = "default-src 'none'; sandbox; frame-ancestors 'none'";

/// Adds what is not there yet.
pub(crate) fn guard(headers: &mut HeaderMap) {
    let all = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // With `no-referrer` browsers would send `Origin: null`, which is no origin of ours.
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (header::HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
    ];
    for (name, value) in all {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}
