//! Crash tests: every writer, killed or without power at any instant, loses nothing.
//!
//! | module | what it does |
//! |---|---|
//! | [`writers`] | the writers of every format: the previous content, and what each one does |
//! | [`content`] | the content of a store, as comparable text |
//! | [`kill`] | runs writers as processes and kills them (`cargo xtask crash`) |
//! | [`race`] | several processes that grow one array concurrently |
//! | [`load`] | many readers of one store while another process appends to it |
//! | [`limit`] | runs writers without disk space or file handles |
//! | [`replay`] | the states that a power cut can leave |
//! | [`power`] | opens the states that a power cut can leave (`cargo xtask power`) |
//! | [`differential`] | changes stores, and compares our reader with the reference library (`cargo xtask differential`) |
//! | [`peer`] | a Python process that reads stores with their reference libraries |
//!
//! `docs/reliability.md` lists the guarantees under test.

pub mod content;
pub mod differential;
pub mod kill;
pub mod limit;
pub mod load;
pub mod peer;
#[cfg(unix)]
pub mod power;
pub mod race;
pub mod random;
#[cfg(unix)]
pub mod replay;
pub mod writers;
