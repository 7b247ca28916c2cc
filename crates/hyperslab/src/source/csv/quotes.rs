//! Finds a quotation mark that is never closed. The reader of rows takes the rest of the file as one field.

use std::io::{self, Read};

/// The state between two bytes.
#[derive(Clone, Copy, PartialEq)]
enum State {
    /// At the start of a field, where a quotation mark opens one.
    Start,
    Unquoted,
    Quoted,
    /// After a quotation mark inside quotes: it ends them, unless another follows.
    Quote,
}

/// The line of the quotation mark that is still open at the end of the text; `None` if there is none. The text begins with a row,
/// in this line.
pub(super) fn unclosed(mut text: impl Read, mut line: u64, delimiter: u8) -> io::Result<Option<u64>> {
    let (mut state, mut opened) = (State::Start, line);
    let mut block = [0; 1 << 13];
    loop {
        let length = text.read(&mut block)?;
        if length == 0 {
            return Ok((state == State::Quoted).then_some(opened));
        }
        for byte in &block[..length] {
            line += u64::from(*byte == b'\n');
            state = match (state, *byte) {
                (State::Quoted, b'"') => State::Quote,
                (State::Quoted, _) => State::Quoted,
                (State::Quote, b'"') => State::Quoted,
                (_, b'\n' | b'\r') => State::Start,
                (_, byte) if byte == delimiter => State::Start,
                (State::Start, b'"') => {
                    opened = line;
                    State::Quoted
                }
                // The mark of UTF-8 at the start of a file.
                (State::Start, 0xef | 0xbb | 0xbf) => State::Start,
                _ => State::Unquoted,
            };
        }
    }
}
