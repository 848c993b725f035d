//! The headers that every response has.

use axum::http::{HeaderMap, HeaderValue, header};

/// Only our own files are loaded, no other page may show this one in a frame, and forms are sent only here.
const POLICY: &str =
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// The policy for an image of a checkpoint: it can run nothing and load nothing, even if it is opened by itself.
pub(crate) const POLICY_OF_CONTENT: &str = "default-src 'none'; sandbox; frame-ancestors 'none'";

/// Adds the headers that are missing.
pub(crate) fn guard(headers: &mut HeaderMap) {
    let all = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // With `no-referrer`, browsers would send `Origin: null` with our own forms.
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (header::HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
    ];
    for (name, value) in all {
        // A header is added only where it is missing: assets may be cached, and images have a stricter policy.
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}
