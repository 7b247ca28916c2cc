//! Encryption of connections.

/// Chooses the implementation of TLS, unless the application has chosen one.
pub(crate) fn install() {
    // An error says that one is installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
