//! Chunk coordinates, which may be negative, and their spelling.

use smallvec::SmallVec;

/// The absolute position of a chunk: `floor(position / chunk_shape)`.
pub(crate) type Coord = SmallVec<[i64; 4]>;

/// Parses the dotted spelling of a coordinate: `6.-1.7`.
pub(crate) fn parse_dotted(text: &str, rank: usize) -> Option<Coord> {
    let coord: Option<Coord> = text.split('.').map(|part| part.parse().ok()).collect();
    coord.filter(|coord| coord.len() == rank)
}

/// The dotted spelling.
pub(crate) fn dotted(coord: &[i64]) -> String {
    coord.iter().map(i64::to_string).collect::<Vec<_>>().join(".")
}

/// The name of a link array: the offsets of all endpoints but the first, signed except for zero.
pub(crate) fn segment_name(offsets: &[Coord]) -> String {
    if offsets.is_empty() {
        return "self".to_owned();
    }
    let signed = |part: &i64| if *part == 0 { "0".to_owned() } else { format!("{part:+}") };
    let tuple = |offset: &Coord| offset.iter().map(signed).collect::<Vec<_>>().join(".");
    offsets.iter().map(tuple).collect::<Vec<_>>().join("_")
}

/// Parses the offsets from the name of a link array with `width` endpoints; `None` if it is not such a name.
pub(crate) fn parse_segment(name: &str, width: usize, rank: usize) -> Option<Vec<Coord>> {
    if width == 1 {
        return (name == "self").then(Vec::new);
    }
    let offsets: Option<Vec<Coord>> = name.split('_').map(|tuple| parse_dotted(tuple, rank)).collect();
    offsets.filter(|offsets| offsets.len() + 1 == width)
}

/// The chunk `floor(position / shape)` per axis.
pub(crate) fn chunk_of(position: f64, shape: f64) -> i64 {
    // Saturates for positions that no store can hold; NaN becomes 0 and fails every box test. Where `floor` is a
    // function call, truncating and correcting is several times as fast.
    let quotient = position / shape;
    let whole = quotient as i64;
    whole.saturating_sub(i64::from(whole as f64 > quotient))
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    #[test]
    fn spellings_match_the_format() {
        assert_eq!(dotted(&[6, -1, 0]), "6.-1.0");
        assert_eq!(parse_dotted("6.-1.0", 3), Some(smallvec![6, -1, 0]));
        assert_eq!(parse_dotted("6.-1", 3), None);
        let offsets: Vec<Coord> = vec![smallvec![0, 1, -1], smallvec![1, 0, -1]];
        assert_eq!(segment_name(&offsets), "0.+1.-1_+1.0.-1");
        assert_eq!(parse_segment("0.+1.-1_+1.0.-1", 3, 3), Some(offsets));
        assert_eq!(parse_segment("0.0.0", 3, 3), None);
        assert_eq!(parse_segment("self", 1, 3), Some(vec![]));
        assert_eq!((chunk_of(-0.1, 50.0), chunk_of(50.0, 50.0)), (-1, 1));
        for quotient in
            [-1e300, -2.5, -2.0, -0.0, 0.0, 1.999, 7.0, 1e15 + 0.5, 1e300, f64::INFINITY, f64::NAN]
        {
            assert_eq!(chunk_of(quotient, 1.0), quotient.floor() as i64, "{quotient}");
        }
    }
}
