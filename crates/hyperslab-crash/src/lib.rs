//! Every writer, killed and cut off at any instant: proof that nothing is lost.
//!
//! | module | what it does |
//! |---|---|
//! | [`writers`] | the writers of every format: what was there before, and what each one does |
//! | [`content`] | what a store holds, as text that can be compared |
//! | [`kill`] | runs writers as processes and kills them (`cargo xtask crash`) |
//! | [`race`] | several processes that grow one array at once |
//! | [`load`] | many readers of one store while another process adds to it |
//! | [`limit`] | runs writers for which there is no room, or no handles |
//! | [`replay`] | what a power cut can leave of the steps of a writer |
//! | [`power`] | opens what a power cut can leave (`cargo xtask power`) |
//! | [`peer`] | a Python process that reads stores with their reference libraries |
//!
//! The promises that are tested stand in `docs/reliability.md`.

pub mod content;
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
