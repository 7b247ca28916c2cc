//! Axes divided into pieces.

use super::*;

/// The positions of piece `number` of `count`, on an axis walked forwards or backwards.
fn piece(extent: u64, count: u64, number: u64, backwards: bool) -> AxisSelection {
    let start = (number * extent).div_ceil(count) as i64;
    let end = ((number + 1) * extent).div_ceil(count) as i64;
    if !backwards {
        return AxisSelection::Slice { start: Some(start), stop: Some(end), step: 1 };
    }
    let last = extent as i64 - 1;
    let stop = if end > last { None } else { Some(last - end) };
    AxisSelection::Slice { start: Some(last - start), stop, step: -1 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn pieces_equal_queries_of_their_positions(
        stored in stored(),
        operation in operations(),
        counts in prop::collection::vec(1_u32..10, 3),
        backwards in any::<bool>(),
        skip_nan in any::<bool>(),
        filtered in any::<bool>(),
    ) {
        // Positions of values are counted in the whole selection; all other operations depend only on the piece.
        prop_assume!(!matches!(operation, Operation::ArgMin | Operation::ArgMax));
        let array = stored.open();
        let rank = stored.shape.len();
        let all = vec![AxisSelection::Slice { start: None, stop: None, step: if backwards { -1 } else { 1 } }; rank];
        let mut query = Query { skip_nan, ..Query::new(operation) };
        if filtered {
            query = query.filter("> 0".parse().unwrap());
        }
        let axes = (0..rank).map(|axis| (Axis::Number(axis), counts[axis])).collect();
        let found = query.clone().select(Selection::positions(all)).group_by(Group::Pieces(axes)).run(&array).unwrap();
        // An axis that is not longer than the number of pieces keeps its positions.
        let extents: Vec<u64> = (0..rank).map(|axis| stored.shape[axis].min(u64::from(counts[axis]))).collect();
        prop_assert_eq!(found.shape(), extents.clone());
        let over: Vec<usize> = (0..rank).collect();
        let mut expected = Vec::new();
        for number in 0..extents.iter().product::<u64>() {
            let mut left = number;
            let mut picks = vec![AxisSelection::ALL; rank];
            for axis in (0..rank).rev() {
                picks[axis] = piece(stored.shape[axis], extents[axis], left % extents[axis], backwards);
                left /= extents[axis];
            }
            expected.extend(naive(&query.clone().select(Selection::positions(picks)), &array, &over));
        }
        if let Err(what) = same(&found, &expected) {
            prop_assert!(false, "{what}: {query:?}");
        }
    }
}

#[test]
fn positions_of_a_long_axis_are_not_listed() {
    let mut schema = ArraySchema::new(DType::UInt8, Grid::new(&[1 << 50], &[1 << 20]).unwrap());
    schema.fill = Fill::Element(Elements::fixed(vec![3]));
    let memory = Memory {
        schema,
        blob: Arc::new(MemoryBlob::new("memory", Vec::new())),
        chunks: Vec::new(),
        plain: false,
        listed: true,
        statistics: None,
    };
    let array = ArrayReader::new(Arc::new(memory), Arc::new(Nothing("memory".into())), 1 << 26);
    let pieces = Group::Pieces(vec![(Axis::Number(0), 1000)]);
    let means = Query::new(Operation::Mean).group_by(pieces).run(&array).unwrap().floats();
    assert_eq!(means, vec![3.0; 1000]);
    assert!(
        Query::new(Operation::Mean).group_by(Group::Pieces(vec![(Axis::Number(0), 0)])).run(&array).is_err()
    );
}
