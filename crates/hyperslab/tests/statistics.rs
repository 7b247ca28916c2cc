//! Statistics of whole chunks answer queries without reading the chunks.
#![cfg(feature = "tiledb")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use hyperslab::query::{Operation, Query};
use hyperslab::{ArraySpec, CreateOptions, DType, Elements, Format, Grid, Result, Selection};

/// A TileDB array of 4 × 6 in tiles of 2 × 2, whose values count up from `first`.
fn write(path: &std::path::Path, dtype: DType, cell: impl Fn(u64) -> Vec<u8>) -> Result<()> {
    let mut sink = hyperslab::create(path, Format::TILEDB, &CreateOptions::default())?;
    let grid = Grid::new(&[4, 6], &[2, 2])?;
    let array = sink.array("/a", &ArraySpec::new(dtype, grid.clone()))?;
    for number in 0..grid.chunks().unwrap_or(0) {
        let coord = grid.coord(number);
        let region = grid.region(&coord);
        let cells = (0..2).flat_map(|row| (0..2).map(move |column| (row, column)));
        let bytes =
            cells.flat_map(|(row, column)| cell((region.start[0] + row) * 6 + region.start[1] + column));
        let elements = Elements::fixed(bytes.collect::<Vec<u8>>());
        let encoded = array.encode(&coord, &elements)?;
        array.write(&coord, encoded)?;
    }
    sink.commit()
}

/// The bytes of the cell with this number.
type Bytes = fn(u64) -> Vec<u8>;

/// Removes the files that contain the cells.
fn without_cells(path: &std::path::Path) {
    let fragments = path.join("__fragments");
    for fragment in std::fs::read_dir(fragments).unwrap().flatten() {
        std::fs::remove_file(fragment.path().join("a0.tdb")).unwrap();
    }
}

#[test]
fn whole_tiles_are_answered_from_fragment_metadata() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let kinds: [(DType, Bytes); 2] = [
        (DType::Float32, |number| (number as f32 - 3.5).to_ne_bytes().to_vec()),
        (DType::Int16, |number| (number as i16 - 3).to_ne_bytes().to_vec()),
    ];
    for (dtype, cell) in kinds {
        let path = folder.path().join(dtype.to_string());
        write(&path, dtype, cell)?;
        let operations = [Operation::Sum, Operation::Mean, Operation::Min, Operation::Max, Operation::Count];
        let ask = |operation: &Operation, selection: &str| {
            let reader = hyperslab::open(&path)?.array("/a")?;
            let query = Query::new(*operation).select(selection.parse::<Selection>()?);
            query.run(&reader)?.scalar()
        };
        // Rows two and three are whole tiles, rows one and two are not.
        let before =
            operations.iter().map(|operation| ask(operation, "[2:4]")).collect::<Result<Vec<_>>>()?;
        let by_hand: Vec<f64> = (12..24)
            .map(|number| match cell(number)[..] {
                [a, b, c, d] => f64::from(f32::from_ne_bytes([a, b, c, d])),
                [a, b] => f64::from(i16::from_ne_bytes([a, b])),
                _ => f64::NAN,
            })
            .collect();
        let sum: f64 = by_hand.iter().sum();
        let expected = [sum, sum / 12.0, by_hand[0], by_hand[11], 12.0];
        assert_eq!(before, expected.map(Some));
        without_cells(&path);
        for (operation, expected) in operations.iter().zip(expected) {
            assert_eq!(ask(operation, "[2:4]")?, Some(expected), "{operation:?}");
        }
        assert!(ask(&Operation::Sum, "[1:3]").is_err());
    }
    Ok(())
}

/// A fixed sequence of pseudo-random words.
struct Random(u64);

impl Random {
    fn word(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// If a tile's sum overflowed while it was computed, it is not used, whatever its final value.
#[test]
fn overflowed_sums_are_not_used() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for number in 0..30 {
        let (dtype, size) = [(DType::Int64, 8), (DType::UInt64, 8), (DType::Int32, 4)][number % 3].clone();
        // Some arrays are small enough for exact sums, some are not.
        let words: Vec<u64> = (0..24).map(|_| random.word() >> (number / 3 * 2)).collect();
        let path = folder.path().join(number.to_string());
        write(&path, dtype.clone(), |cell| words[cell as usize].to_le_bytes()[..size].to_vec())?;
        let exact: i128 = words
            .iter()
            .map(|word| match dtype {
                DType::Int64 => i128::from(word.cast_signed()),
                DType::UInt64 => i128::from(*word),
                _ => i128::from(*word as u32 as i32),
            })
            .sum();
        let reader = hyperslab::open(&path)?.array("/a")?;
        let sum = Query::new(Operation::Sum).run(&reader)?.scalar()?;
        let mean = Query::new(Operation::Mean).run(&reader)?.scalar()?;
        assert_eq!(sum, Some(exact as f64), "{dtype} {number}");
        let expected = exact as f64 / 24.0;
        let mean = mean.unwrap();
        assert!((mean - expected).abs() <= expected.abs() * 1e-15, "{dtype} {number}: {mean} {expected}");
    }
    Ok(())
}
