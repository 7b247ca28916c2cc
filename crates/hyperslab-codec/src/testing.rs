//! Test helpers.

/// Bytes from hexadecimal digits; blanks are skipped.
pub(crate) fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits
        .bytes()
        .filter(|b| !b.is_ascii_whitespace())
        .map(|b| char::from(b).to_digit(16).expect("a hexadecimal digit") as u8)
        .collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// Reproducible bytes without repetition.
pub(crate) fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .collect()
}

/// The content of the `steps.*` files: 300 little-endian integers in runs of seven.
pub(crate) fn steps() -> Vec<u8> {
    (0..300i32).flat_map(|i| (i / 7 * 3).to_le_bytes()).collect()
}

/// The content of the `ramp*` files: `n` little-endian numbers of `size` bytes that grow with small variations.
pub(crate) fn ramp(n: u64, size: usize) -> Vec<u8> {
    (0..n).flat_map(|i| (i * 37 + (i * i) % 101).to_le_bytes().into_iter().take(size)).collect()
}

/// The content of the `stair*` files: `n` little-endian numbers of `size` bytes, each three times.
pub(crate) fn stair(n: u64, size: usize) -> Vec<u8> {
    (0..n).flat_map(|i| (i / 3 * 5).to_le_bytes().into_iter().take(size)).collect()
}

/// The bytes of a file under `tests/data`.
pub(crate) fn data(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The parameters in `tests/data/{name}.cd`.
pub(crate) fn client(name: &str) -> Vec<u32> {
    data(&format!("{name}.cd")).as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
}
