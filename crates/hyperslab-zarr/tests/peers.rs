//! Against the live libraries.
