//! Random bytes from the system, for initialisation vectors and the unique parts of names.

use std::fs::File;
use std::io::Read;

use hyperslab_core::{Error, Result};

/// `N` bytes that nobody can foresee.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N]> {
    const SOURCE: &str = "/dev/urandom";
    let mut random = [0; N];
    File::open(SOURCE)
        .and_then(|mut source| source.read_exact(&mut random))
        .map_err(|error| Error::io(SOURCE, error))?;
    Ok(random)
}

/// 32 lower-case hexadecimal digits.
pub(crate) fn uuid() -> Result<String> {
    let random = bytes::<16>()?;
    Ok(format!("{:032x}", u128::from_le_bytes(random)))
}
