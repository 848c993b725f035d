//! Whether the server is who its name says: its certificate is of that name and of an authority that is trusted.

use std::error::Error as _;

use ic_base::{Code, Diagnosis, Result};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{CertificateError, ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error::said;
use crate::server_url::ServerUrl;

/// What encrypts a connection and verifies the server. Errors: `invalid_value` for a file of authorities that cannot be read.
pub(super) fn connector(url: &ServerUrl) -> Result<MakeRustlsConnect> {
    let mut roots = RootCertStore::empty();
    match &url.root_certificates {
        Some(file) => {
            let bad = |why: String| {
                Diagnosis::new(
                    Code::InvalidValue,
                    format!("The certificates in {} cannot be used: {why}.", file.display()),
                )
                .hint("sslrootcert names a file of certificates in PEM")
            };
            for certificate in CertificateDer::pem_file_iter(file).map_err(|e| bad(e.to_string()))? {
                let certificate = certificate.map_err(|e| bad(e.to_string()))?;
                roots.add(certificate).map_err(|e| bad(e.to_string()))?;
            }
            if roots.is_empty() {
                return Err(bad("there is none".to_owned()));
            }
        }
        // A certificate that cannot be read is left out: the others may be enough.
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    // The provider is named, because rustls panics if a program links more than one and names none.
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| Diagnosis::new(Code::Internal, format!("preparing TLS: {e}.")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// The diagnosis of a connection that failed because the server could not be verified; `None`: it failed otherwise.
pub(super) fn distrust(error: &tokio_postgres::Error, url: &ServerUrl) -> Option<Diagnosis> {
    let source = error.source()?;
    // `io::Error::source` skips the error that it wraps; `get_ref` returns it.
    let inner = source.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    let refused = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let (why, hint) = match refused {
        Some(rustls::Error::InvalidCertificate(why)) => (
            format!("its certificate is refused: {why}"),
            match why {
                CertificateError::UnknownIssuer => "if its authority is one of your own: ?sslrootcert=FILE",
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                    "use the name that the certificate is of"
                }
                _ => "have the certificate made anew",
            },
        ),
        Some(other) => (other.to_string(), "is it a server of PostgreSQL that speaks TLS?"),
        None if said(error).contains("does not support TLS") => (
            "it does not speak TLS".to_owned(),
            "set TLS up on the server; only where the network is your own: ?sslmode=disable",
        ),
        None => return None,
    };
    Some(
        Diagnosis::new(
            Code::UntrustedServer,
            format!("The server of {url} cannot be trusted: {why}. Nothing was sent to it."),
        )
        .hint(hint)
        .detail("db", url.to_string()),
    )
}
