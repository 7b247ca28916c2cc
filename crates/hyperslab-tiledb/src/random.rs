//! Random bytes from the system, for initialisation vectors and the unique parts of names.

use hyperslab_core::{Error, Result};

/// Returns `N` unpredictable bytes.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N]> {
    let mut random = [0; N];
    getrandom::fill(&mut random)
        .map_err(|problem| Error::io("the system's random numbers", std::io::Error::other(problem)))?;
    Ok(random)
}

/// Returns 32 random lower-case hexadecimal digits.
pub(crate) fn uuid() -> Result<String> {
    let random = bytes::<16>()?;
    Ok(format!("{:032x}", u128::from_le_bytes(random)))
}
