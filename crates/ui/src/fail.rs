//! Shows errors as pages.

use axum::http::StatusCode;
use ic_base::{Code, Diagnosis, ErrorKind};
use maud::html;

use crate::door::Refused;
use crate::layout::{PageLayout, said};

/// The status code of an error.
pub(crate) fn status(error: &Diagnosis) -> StatusCode {
    match (error.kind(), error.code()) {
        // Another process holds a lock, so the same request may succeed later.
        (_, Code::Busy) => StatusCode::SERVICE_UNAVAILABLE,
        // The name of the code decides, so that an error that is added later has the right status by itself.
        (ErrorKind::Usage, code) if code.as_str().ends_with("_not_found") => StatusCode::NOT_FOUND,
        (ErrorKind::Usage, _) => StatusCode::BAD_REQUEST,
        (ErrorKind::No, _) => StatusCode::CONFLICT,
        (ErrorKind::Failure, _) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// The page of an error.
pub(crate) fn page(error: &Diagnosis) -> PageLayout {
    let status = status(error);
    let title = match status {
        _ if error.code() == Code::NoLedger => "The ledger is gone",
        StatusCode::NOT_FOUND => "It is not here",
        StatusCode::BAD_REQUEST => "This cannot be answered",
        StatusCode::CONFLICT => "It cannot be done now",
        StatusCode::SERVICE_UNAVAILABLE => "The ledger is busy",
        _ => "It failed",
    };
    let body = html! {
        h1 { (title) }
        div.notice.bad { (said(error)) }
        @if status == StatusCode::BAD_REQUEST { p.quiet { "Nothing was changed." } }
        p { a href="/" { "All runs" } }
    };
    PageLayout::new(title, body).with(status)
}

/// The response to a request that is refused. It is plain text, because a page would tell the name of the project.
pub(crate) fn refused(why: Refused) -> (StatusCode, &'static str) {
    match why {
        Refused::Host => (
            StatusCode::MISDIRECTED_REQUEST,
            "This page answers to 127.0.0.1 and localhost alone. Open the address that ic ui printed.",
        ),
        Refused::Key => (StatusCode::FORBIDDEN, "This page needs its key. Open the address that ic ui printed."),
        Refused::Origin => (StatusCode::FORBIDDEN, "Another page sent this request. Nothing was changed."),
        Refused::Form => (
            StatusCode::FORBIDDEN,
            "This form is not of this page, or of an earlier ic ui. Nothing was changed. Load the page again.",
        ),
    }
}
