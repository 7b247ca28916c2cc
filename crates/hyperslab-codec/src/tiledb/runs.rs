//! Runs of equal cells: the cell, then a big-endian `u16` count.

use crate::error::{Result, corrupt, invalid, size as size_error};

const CODEC: &str = "rle";

/// Decodes runs of cells of `cell` bytes into `out`, which they must fill.
///
/// # Errors
///
/// [`Corrupt`](crate::CodecError::Corrupt) or [`Size`](crate::CodecError::Size) for invalid bytes.
pub fn decode_runs(cell: usize, src: &[u8], out: &mut [u8]) -> Result<()> {
    if cell == 0 || !src.len().is_multiple_of(cell + 2) {
        return Err(corrupt(
            CODEC,
            format!("{} bytes are not whole runs of cells of {cell} bytes", src.len()),
        ));
    }
    let mut at = 0;
    for run in src.chunks_exact(cell + 2) {
        let count = usize::from(u16::from_be_bytes([run[cell], run[cell + 1]]));
        let end = at + count * cell;
        let Some(target) = out.get_mut(at..end) else { return Err(size_error(CODEC, out.len(), end)) };
        if let ([value], true) = (&run[..cell], cell == 1) {
            target.fill(*value);
        } else {
            for to in target.chunks_exact_mut(cell) {
                to.copy_from_slice(&run[..cell]);
            }
        }
        at = end;
    }
    if at != out.len() {
        return Err(size_error(CODEC, out.len(), at));
    }
    Ok(())
}

/// Appends the runs of `src`.
///
/// # Errors
///
/// [`Invalid`](crate::CodecError::Invalid) if `src` is not whole cells.
pub fn encode_runs(cell: usize, src: &[u8], out: &mut Vec<u8>) -> Result<()> {
    if cell == 0 || !src.len().is_multiple_of(cell) {
        return Err(invalid(
            CODEC,
            format!("{} bytes are not a multiple of the cell size {cell}", src.len()),
        ));
    }
    let mut cells = src.chunks_exact(cell).peekable();
    while let Some(value) = cells.next() {
        let mut count = 1_u16;
        while count < u16::MAX && cells.next_if_eq(&value).is_some() {
            count += 1;
        }
        out.extend_from_slice(value);
        out.extend(count.to_be_bytes());
    }
    Ok(())
}
