//! The developer's chores.
fn main() {}
