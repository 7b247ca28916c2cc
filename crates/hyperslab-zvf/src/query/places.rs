//! Maps the rows of one chunk to their places in a result.

use std::collections::HashMap;

/// Marks a row that is not selected.
pub(crate) const NONE: u32 = u32::MAX;

/// Above this fraction of a chunk's rows, a table of all rows is smaller and faster than a map.
const MAP_FRACTION: usize = 16;

/// Row to place: a map for few rows, a table for many.
#[derive(Debug)]
pub(crate) enum Places {
    Few(HashMap<u32, u32>),
    All(Vec<u32>),
}

impl Default for Places {
    fn default() -> Self {
        Self::Few(HashMap::new())
    }
}

impl Places {
    /// The place of a row; `None` if it is not selected.
    pub(crate) fn get(&self, row: usize) -> Option<u32> {
        let place = match self {
            Self::Few(few) => few.get(&u32::try_from(row).ok()?),
            Self::All(all) => all.get(row),
        };
        place.copied().filter(|place| *place != NONE)
    }

    /// Sets the place of a row. The chunk has `rows` rows, fewer than 2^32.
    pub(crate) fn set(&mut self, row: usize, place: u32, rows: usize) {
        match self {
            Self::Few(few) if few.len() < rows / MAP_FRACTION => {
                few.insert(row as u32, place);
            }
            _ => self.dense(rows)[row] = place,
        }
    }

    /// The table for all `rows` rows.
    pub(crate) fn dense(&mut self, rows: usize) -> &mut [u32] {
        if let Self::Few(few) = self {
            let mut all = vec![NONE; rows];
            few.iter().for_each(|(row, place)| all[*row as usize] = *place);
            *self = Self::All(all);
        }
        match self {
            Self::All(all) => all,
            Self::Few(_) => &mut [],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_rows_are_found() {
        for rows in [1, 5, 100, 1000] {
            let mut places = Places::default();
            for place in 0..rows {
                let row = place * 7 % rows;
                assert!(places.get(row).is_none() || rows % 7 == 0);
                places.set(row, place as u32, rows);
                assert_eq!(places.get(row), Some(place as u32));
            }
            assert_eq!(places.get(rows), None);
            assert_eq!((0..rows).filter_map(|row| places.get(row)).count(), rows);
        }
    }
}
