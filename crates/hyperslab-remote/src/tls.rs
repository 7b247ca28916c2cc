//! The TLS implementation.

/// Selects a TLS implementation, unless the application has already done so.
pub(crate) fn install() {
    // An error means that one is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
