//! Folding over chunks equals folding over the whole array: any chunking, layout, selection, axes and filter.

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use hyperslab_core::*;
use proptest::prelude::*;

use super::windows::Window;
use super::*;
use crate::ArrayReader;

/// An array in memory, stored in one of the ways that formats store chunks.
#[derive(Debug)]
struct Memory {
    schema: ArraySchema,
    blob: Arc<MemoryBlob>,
    /// Offset of each chunk, by number; `None` if it was never written.
    chunks: Vec<Option<u64>>,
    plain: bool,
    /// Whether it lists the written chunks.
    listed: bool,
    statistics: Option<bool>,
}

#[derive(Debug)]
struct Nothing(Arc<str>);

impl Store for Nothing {
    fn format(&self) -> &'static str {
        "memory"
    }
    fn name(&self) -> &Arc<str> {
        &self.0
    }
    fn children(&self, _: &str) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
    fn node(&self, path: &str) -> Result<Node> {
        Err(Error::not_found("memory", path))
    }
    fn verify(&self, _: Depth, _: &mut Report) -> Result<()> {
        Ok(())
    }
}

impl Array for Memory {
    fn schema(&self) -> &ArraySchema {
        &self.schema
    }
    fn name(&self) -> &str {
        "memory"
    }
    fn locate(&self, chunks: &[ChunkCoord]) -> Result<Vec<Option<ChunkRef>>> {
        let one = |chunk: &ChunkCoord| {
            let number = self.schema.grid.linear(chunk).unwrap() as usize;
            let length = self.schema.decoded_bytes(chunk).unwrap() as u64;
            self.chunks[number].map(|offset| {
                if self.plain {
                    ChunkRef::plain(BlobKey::Main, offset, length)
                } else {
                    ChunkRef::encoded(BlobKey::Main, offset, length, 0)
                }
            })
        };
        Ok(chunks.iter().map(one).collect())
    }
    fn blob(&self, _: &BlobKey) -> Result<Arc<dyn Blob>> {
        Ok(Arc::<MemoryBlob>::clone(&self.blob))
    }
    fn decode(&self, _: &ChunkCoord, _: &ChunkRef, stored: &[Bytes], out: &mut [u8]) -> Result<()> {
        out.copy_from_slice(&stored[0]);
        Ok(())
    }
    fn visit_chunks(
        &self,
        visit: &mut dyn FnMut(ChunkCoord, ChunkRef) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        for number in (0..self.chunks.len() as u64).rev() {
            let coord = self.schema.grid.coord(number);
            if let Some(reference) = self.locate(std::slice::from_ref(&coord))?.remove(0)
                && visit(coord, reference)?.is_break()
            {
                break;
            }
        }
        Ok(())
    }
    fn visits_every_chunk(&self) -> bool {
        self.listed
    }
    fn statistics(&self, chunks: &[ChunkCoord]) -> Result<Vec<Option<ChunkStatistics>>> {
        let Some(hint) = self.statistics else { return Ok(vec![None; chunks.len()]) };
        // These statistics are false: every chunk claims to hold only -1000.
        let lie = Some(Number::Integer(-1000));
        Ok(vec![
            Some(ChunkStatistics { min: lie, max: lie, hint, ..ChunkStatistics::default() });
            chunks.len()
        ])
    }
}

/// How an array is stored.
#[derive(Debug, Clone)]
struct Stored {
    shape: Vec<u64>,
    chunk: Vec<u64>,
    dtype: DType,
    plain: bool,
    clipped: bool,
    fortran: bool,
    /// Bytes before the first chunk, so that nothing is aligned.
    odd: usize,
    /// One in this many chunks was never written.
    holes: usize,
    /// The fill value: zero, or the element with this number.
    fill: Option<u64>,
    /// Whether the written chunks are listed, or the grid is walked.
    listed: bool,
    seed: u64,
}

fn element(dtype: &DType, number: u64) -> Vec<u8> {
    let value = (number % 23) as i64 - 9;
    let float = if number % 29 == 7 { f64::NAN } else { value as f64 * 0.375 };
    match dtype {
        DType::Float32 => (float as f32).to_ne_bytes().to_vec(),
        DType::Float64 => float.to_ne_bytes().to_vec(),
        DType::Float16 => half::f16::from_f64(float).to_ne_bytes().to_vec(),
        DType::Int64 => (value << 55).to_ne_bytes().to_vec(),
        DType::UInt64 => (number << 50).to_ne_bytes().to_vec(),
        DType::Int16 => (value as i16).to_ne_bytes().to_vec(),
        _ => vec![number as u8],
    }
}

impl Stored {
    fn open(&self) -> ArrayReader {
        let mut schema = ArraySchema::new(self.dtype.clone(), Grid::new(&self.shape, &self.chunk).unwrap());
        schema.edges = if self.clipped { Edges::Clipped } else { Edges::Padded };
        schema.order = if self.fortran { CellOrder::ColumnMajor } else { CellOrder::RowMajor };
        schema.dimensions =
            ["t", "y", "x"].iter().take(self.shape.len()).map(|name| Some((*name).to_owned())).collect();
        if let Some(number) = self.fill {
            schema.fill = Fill::Element(Elements::fixed(element(&self.dtype, number)));
        }
        if self.holes > 0 {
            let label = |at: u64| format!("label {}", at * at % 5 / 2);
            let texts = |extent: &u64| Labels::Texts((0..*extent).map(label).collect());
            schema.labels = self.shape.iter().map(texts).collect();
        }
        let mut bytes = vec![0xee; self.odd];
        let mut chunks = Vec::new();
        let item = self.dtype.size().unwrap();
        for number in 0..schema.grid.chunks().unwrap() {
            if self.holes > 0 && number as usize % self.holes == self.holes - 1 {
                chunks.push(None);
                continue;
            }
            chunks.push(Some(bytes.len() as u64));
            let cells = schema.decoded_bytes(&schema.grid.coord(number)).unwrap() / item;
            for cell in 0..cells as u64 {
                bytes.extend(element(
                    &self.dtype,
                    (self.seed + number * 7919 + cell).wrapping_mul(2_654_435_761) >> 7,
                ));
            }
        }
        let blob = Arc::new(MemoryBlob::new("memory", bytes));
        let memory =
            Memory { schema, blob, chunks, plain: self.plain, listed: self.listed, statistics: None };
        ArrayReader::new(Arc::new(memory), Arc::new(Nothing("memory".into())), 1 << 30)
    }
}

fn stored() -> impl Strategy<Value = Stored> {
    let axis = (1_u64..9, 1_u64..6);
    let dtypes = vec![
        DType::Float32,
        DType::Float64,
        DType::Float16,
        DType::Int64,
        DType::UInt64,
        DType::Int16,
        DType::UInt8,
    ];
    let layout = (any::<bool>(), any::<bool>(), any::<bool>(), 0_usize..5, any::<u32>());
    let unwritten = (0_usize..4, prop::option::of(0_u64..60), any::<bool>());
    (prop::collection::vec(axis, 1..4), prop::sample::select(dtypes), layout, unwritten).prop_map(
        |(axes, dtype, (plain, clipped, fortran, odd, seed), (holes, fill, listed))| {
            let (shape, chunk) = axes.into_iter().unzip();
            Stored {
                shape,
                chunk,
                dtype,
                plain,
                clipped,
                fortran,
                odd,
                holes,
                fill,
                listed,
                seed: seed.into(),
            }
        },
    )
}

fn operations() -> impl Strategy<Value = Operation> {
    prop::sample::select(vec![
        Operation::Count,
        Operation::Sum,
        Operation::Mean,
        Operation::Min,
        Operation::Max,
        Operation::Var { ddof: 0 },
        Operation::Std { ddof: 1 },
        Operation::Product,
        Operation::NormL1,
        Operation::NormL2,
        Operation::ArgMin,
        Operation::ArgMax,
        Operation::Median,
        Operation::Quantile(0.3),
        Operation::AllFinite,
        Operation::NanCount,
    ])
}

/// One selected value, exact if it is an integer.
#[derive(Debug, Clone, Copy)]
struct Value {
    float: f64,
    whole: Option<i128>,
}

fn values_of(values: &Values) -> Vec<Value> {
    let item = values.dtype.size().unwrap();
    let one = |bytes: &[u8]| {
        let float = |float: f64| Value { float, whole: None };
        let whole = |whole: i128| Value { float: whole as f64, whole: Some(whole) };
        match values.dtype {
            DType::Float32 => float(f32::from_ne_bytes(bytes.try_into().unwrap()).into()),
            DType::Float64 => float(f64::from_ne_bytes(bytes.try_into().unwrap())),
            DType::Float16 => float(half::f16::from_ne_bytes(bytes.try_into().unwrap()).into()),
            DType::Int64 => whole(i64::from_ne_bytes(bytes.try_into().unwrap()).into()),
            DType::UInt64 => whole(u64::from_ne_bytes(bytes.try_into().unwrap()).into()),
            DType::Int16 => whole(i16::from_ne_bytes(bytes.try_into().unwrap()).into()),
            _ => whole(bytes[0].into()),
        }
    };
    values.elements.as_fixed().unwrap().chunks_exact(item).map(one).collect()
}

/// The answer of one cell, computed in the simplest way: `(float, exact)`, or `None` if it is missing.
fn expected_answer(
    operation: Operation,
    skip_nan: bool,
    given: &[(u64, Value)],
) -> Option<(f64, Option<i128>)> {
    let all: Vec<(u64, Value)> =
        given.iter().copied().filter(|(_, value)| !skip_nan || !value.float.is_nan()).collect();
    let floats: Vec<f64> = all.iter().map(|(_, value)| value.float).collect();
    let wholes: Option<Vec<i128>> = all.iter().map(|(_, value)| value.whole).collect();
    let wholes = wholes.filter(|wholes| !wholes.is_empty());
    let n = floats.len() as f64;
    let count = |count: usize| Some((count as f64, Some(count as i128)));
    let float = |value: f64| Some((value, None));
    match operation {
        Operation::Count => return count(floats.len()),
        Operation::Sum => return Some((floats.iter().sum(), wholes.map(|wholes| wholes.iter().sum()))),
        Operation::AllFinite => {
            return count(usize::from(given.iter().all(|(_, value)| value.float.is_finite())));
        }
        Operation::NanCount => return count(given.iter().filter(|(_, value)| value.float.is_nan()).count()),
        _ => {}
    }
    if floats.is_empty() {
        return None;
    }
    let nan = floats.iter().any(|value| value.is_nan());
    let mean = floats.iter().sum::<f64>() / n;
    let squares = floats.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    let sorted = |q: f64| {
        let mut sorted = floats.clone();
        sorted.sort_by(f64::total_cmp);
        let at = q * (n - 1.0);
        let (low, high) = (at.floor() as usize, at.ceil() as usize);
        if nan { f64::NAN } else { sorted[low] + (sorted[high] - sorted[low]) * (at - at.floor()) }
    };
    match operation {
        Operation::Mean => float(mean),
        Operation::Min if nan => float(f64::NAN),
        Operation::Max if nan => float(f64::NAN),
        Operation::Min => Some((
            floats.iter().copied().fold(f64::INFINITY, f64::min),
            wholes.and_then(|w| w.into_iter().min()),
        )),
        Operation::Max => Some((
            floats.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            wholes.and_then(|w| w.into_iter().max()),
        )),
        Operation::Var { ddof } => (n > f64::from(ddof)).then(|| (squares / (n - f64::from(ddof)), None)),
        Operation::Std { ddof } => {
            (n > f64::from(ddof)).then(|| ((squares / (n - f64::from(ddof))).sqrt(), None))
        }
        // Integers have no infinity: a zero among them makes the product zero, wherever it is.
        Operation::Product if wholes.as_ref().is_some_and(|wholes| wholes.contains(&0)) => float(0.0),
        Operation::Product => float(floats.iter().product()),
        Operation::NormL1 => {
            Some((floats.iter().map(|v| v.abs()).sum(), wholes.map(|w| w.iter().map(|v| v.abs()).sum())))
        }
        Operation::NormL2 => float(floats.iter().map(|value| value * value).sum::<f64>().sqrt()),
        Operation::Median => float(sorted(0.5)),
        Operation::Quantile(q) => float(sorted(q)),
        Operation::ArgMin | Operation::ArgMax => {
            let less = |a: &Value, b: &Value| match (a.whole, b.whole) {
                (Some(a), Some(b)) => a < b,
                _ => a.float < b.float,
            };
            let mut best = all[0];
            for next in &all[1..] {
                let better = match operation {
                    _ if best.1.float.is_nan() => false,
                    _ if next.1.float.is_nan() => true,
                    Operation::ArgMin => less(&next.1, &best.1),
                    _ => less(&best.1, &next.1),
                };
                if better {
                    best = *next;
                }
            }
            count(best.0 as usize)
        }
        _ => unreachable!("no other operation is drawn"),
    }
}

/// Every answer of a query, computed in the simplest way: read everything, group by the kept axes, one cell after another.
fn naive(query: &Query, array: &ArrayReader, over: &[usize]) -> Vec<Option<(f64, Option<i128>)>> {
    let positions = array.resolve(&query.selection).unwrap();
    let counts = positions.counts();
    let values = values_of(&array.read(&query.selection).unwrap());
    let reduced = |axis: usize| over.is_empty() || over.contains(&axis);
    let kept: Vec<usize> = (0..counts.len()).filter(|axis| !reduced(*axis)).collect();
    let cells: u64 = kept.iter().map(|axis| counts[*axis]).product();
    let mut groups = vec![Vec::new(); cells as usize];
    let limit = query.conditions.all.first().map(|condition| match condition {
        Condition::Compare(_, Number::Integer(value)) => *value as f64,
        _ => 0.0,
    });
    for (index, value) in values.iter().enumerate() {
        let (mut left, mut cell, mut each, mut at, mut step) = (index as u64, 0, 1, 0, 1);
        for axis in (0..counts.len()).rev() {
            let place = left % counts[axis];
            left /= counts[axis];
            if reduced(axis) {
                at += place * step;
                step *= counts[axis];
            } else {
                cell += place * each;
                each *= counts[axis];
            }
        }
        if limit.is_none_or(|limit| value.float > limit) {
            groups[cell as usize].push((at, *value));
        }
    }
    groups.iter().map(|group| expected_answer(query.operation, query.skip_nan, group)).collect()
}

fn same(found: &Answer, expected: &[Option<(f64, Option<i128>)>]) -> std::result::Result<(), String> {
    if found.column.len() != expected.len() {
        return Err(format!("{} answers, expected {}", found.column.len(), expected.len()));
    }
    for (index, expected) in expected.iter().enumerate() {
        let valid = found.column.valid[index];
        let fine = match expected {
            None => !valid,
            Some((_, Some(whole))) if !found.column.inexact => {
                valid && found.column.integers[index] == *whole
            }
            Some((float, _)) => {
                let own = found.float(index);
                let close = (own - float).abs() <= 1e-9 * float.abs().max(1.0);
                valid && (close || own == *float || own.is_nan() && float.is_nan())
            }
        };
        if !fine {
            return Err(format!(
                "answer {index}: {:?}, expected {expected:?}",
                valid.then(|| found.float(index))
            ));
        }
    }
    Ok(())
}

fn slices(shape: &[u64], picks: &[(u64, u64, u64, bool)]) -> Selection {
    let axes: Vec<AxisSelection> = shape
        .iter()
        .zip(picks)
        .map(|(extent, (start, count, step, backwards))| {
            let (start, step) = (start % extent, 1 + step % 3);
            let stop = (start + 1 + count).min(*extent);
            if *backwards {
                let stop = if start == 0 { None } else { Some(start as i64 - 1) };
                AxisSelection::Slice { start: Some(stop_at(extent, count)), stop, step: -(step as i64) }
            } else {
                AxisSelection::Slice { start: Some(start as i64), stop: Some(stop as i64), step: step as i64 }
            }
        })
        .collect();
    Selection::positions(axes)
}

fn stop_at(extent: &u64, count: &u64) -> i64 {
    (extent - 1 - count % extent.div_ceil(2)) as i64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(768))]

    #[test]
    fn folding_chunks_equals_folding_the_whole(
        stored in stored(),
        operation in operations(),
        picks in prop::collection::vec((0_u64..9, 0_u64..9, 0_u64..9, any::<bool>()), 3),
        whole in any::<bool>(),
        over in 0_u8..8,
        skip_nan in any::<bool>(),
        filtered in any::<bool>(),
        parts in 1_u64..6,
    ) {
        let array = stored.open();
        let over: Vec<usize> = (0..stored.shape.len()).filter(|axis| over >> axis & 1 == 1).collect();
        let mut query = Query::new(operation).over(over.iter().copied());
        if !whole {
            query = query.select(slices(&stored.shape, &picks));
        }
        query.skip_nan = skip_nan;
        if filtered {
            query = query.filter("> 0".parse().unwrap());
        }
        let expected = naive(&query, &array, &over);
        let found = query.run(&array).unwrap();
        if let Err(what) = same(&found, &expected) {
            prop_assert!(false, "{what}: {query:?}");
        }
        // Run in parts, serialised and merged in any order: not a bit differs.
        let plan = query.plan(&array).unwrap();
        let plan: QueryPlan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
        let mut done: Vec<Partial> = plan.split(parts).iter().map(|part| {
            let part = part.run_part(&array).unwrap();
            serde_json::from_str(&serde_json::to_string(&part).unwrap()).unwrap()
        }).collect();
        done.reverse();
        let merged = plan.merge(done).unwrap();
        prop_assert_eq!(format!("{:?}", merged.to_json().unwrap()), format!("{:?}", found.to_json().unwrap()));
    }

    /// Listing the written chunks and locating every chunk of the grid give the same bits.
    #[test]
    fn listing_written_chunks_does_not_change_answers(
        stored in stored(),
        operation in prop_oneof![operations(), prop::sample::select(vec![
            Operation::AnyNan,
            Operation::AnyInf,
            Operation::InfCount,
            Operation::NullCount { fill: Some(0.0) },
            Operation::Histogram { bins: 3, range: None, clamp: false },
            Operation::Histogram { bins: 4, range: Some((-1.0, 2.0)), clamp: true },
        ])],
        (picks, whole) in (prop::collection::vec((0_u64..9, 0_u64..9, 0_u64..9, any::<bool>()), 3), any::<bool>()),
        over in 0_u8..8,
        (form, size) in (0..5, 1_u64..5),
        (skip_nan, filtered, digits) in (any::<bool>(), any::<bool>(), any::<bool>()),
        (step, parts) in (0_usize..4, 1_u64..6),
    ) {
        let mut query = Query { skip_nan, ..Query::new(operation) };
        let rank = stored.shape.len();
        match form {
            0 => query = query.group_by(Group::Labels(vec![Axis::Number(0)])),
            1 => query = query.group_by(Group::Labels((0..rank).map(Axis::Number).collect())),
            4 => query = query.group_by(Group::Pieces((0..rank).map(|axis| (Axis::Number(axis), size as u32)).collect())),
            2 if !matches!(operation, Operation::Median | Operation::Quantile(_) | Operation::Histogram { .. }) => {
                query = query.window(Window::rolling(rank - 1, size));
            }
            _ => query = query.over((0..rank).filter(|axis| over >> axis & 1 == 1)),
        }
        if !whole {
            query = query.select(slices(&stored.shape, &picks));
        }
        if filtered {
            query = query.filter("<= 1".parse().unwrap());
        }
        let stored = Stored { holes: 1 + step, ..stored };
        let [one, other] = [true, false].map(|listed| {
            let array = Stored { listed, ..stored.clone() }.open();
            let plan = query.plan(&array).map_err(|error| error.to_string())?;
            let answer = match operation {
                Operation::Median | Operation::Quantile(_) if digits => super::order::by_digits(&plan, &array),
                _ => plan.run(&array),
            };
            let in_parts = match operation {
                Operation::Histogram { range: None, .. } => None,
                _ => Some(plan.split(parts).iter().map(|part| part.run_part(&array).unwrap()).collect::<Vec<_>>()),
            };
            let merged = in_parts.map(|parts| plan.merge(parts).unwrap().to_json().unwrap());
            let told = answer.map_err(|error| error.to_string())?.to_json().unwrap();
            let explained = plan.explain(&array).unwrap();
            Ok::<_, String>((format!("{told:?}"), format!("{merged:?}"), explained.unwritten, explained.stored_bytes))
        });
        prop_assert_eq!(one, other);
    }

    #[test]
    fn windows_equal_queries_of_their_positions(
        stored in stored(),
        operation in prop::sample::select(vec![Operation::Sum, Operation::Max, Operation::Mean, Operation::ArgMin]),
        axis in 0_usize..3, size in 1_u64..9, step in 1_u64..4, rolling in any::<bool>(), from_end in any::<bool>(), padded in any::<bool>(),
    ) {
        let array = stored.open();
        let axis = axis % stored.shape.len();
        let extent = stored.shape[axis];
        let size = size.min(extent);
        let mut window = if rolling { Window::rolling(axis, size) } else { Window::bins(axis, size) };
        window.from_end = from_end;
        if rolling { window.step = step; }
        if padded { window.pad = Pad::Zero; }
        let query = Query { skip_nan: true, window: Some(window.clone()), ..Query::new(operation) };
        let found = query.run(&array).unwrap();
        let values = values_of(&array.read(&Selection::all()).unwrap());
        let places = window.places(axis, extent).unwrap();
        let inner: u64 = stored.shape[axis + 1..].iter().product();
        let outer: u64 = stored.shape[..axis].iter().product();
        let integer = stored.dtype.is_integer();
        let mut expected = Vec::new();
        for before in 0..outer { for number in 0..places.count { for after in 0..inner {
            let start = places.start(number);
            let mut group = Vec::new();
            let mut missing = Vec::new();
            for at in 0..size as i64 {
                let position = start + at;
                if (0..extent as i64).contains(&position) {
                    group.push((at as u64, values[((before * extent + position as u64) * inner + after) as usize]));
                } else if padded {
                    missing.push(Value { float: 0.0, whole: integer.then_some(0) });
                }
            }
            let real = group.iter().filter(|(_, value)| !value.float.is_nan()).count();
            let first = group.len() as u64;
            group.extend(missing.into_iter().enumerate().map(|(i, value)| (first + i as u64, value)));
            // The position of the minimum among padding is undefined.
            expected.push(if real == 0 { None } else { expected_answer(operation, true, &group) });
        }}}
        if operation == Operation::ArgMin && padded { return Ok(()); }
        if operation == Operation::Sum || !stored.dtype.is_float() || !padded {
            for (index, expected) in expected.iter().enumerate() {
                let own = found.column.valid[index].then(|| found.float(index));
                let expected = expected.map(|(float, _)| float);
                let fine = match (own, expected) {
                    (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * b.abs().max(1.0),
                    (a, b) => a == b,
                };
                prop_assert!(fine, "window answer {index}: {own:?}, expected {expected:?}: {window:?}");
            }
        }
    }
}

fn field(dtype: DType, shape: &[u64], chunk: &[u64]) -> Stored {
    Stored {
        shape: shape.to_vec(),
        chunk: chunk.to_vec(),
        dtype,
        plain: true,
        clipped: false,
        fortran: false,
        odd: 1,
        holes: 0,
        fill: None,
        listed: true,
        seed: 3,
    }
}

#[test]
fn the_number_of_threads_does_not_change_answers() {
    let array = field(DType::Float64, &[40, 50, 60], &[7, 11, 13]).open();
    let all = [Operation::Sum, Operation::Var { ddof: 0 }, Operation::NormL2];
    let once = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            all.iter()
                .flat_map(|operation| [Query::new(*operation), Query::new(*operation).over([0, 2])])
                .map(|query| format!("{:?}", query.skip_nan().run(&array).unwrap().to_json().unwrap()))
                .collect::<Vec<_>>()
        })
    };
    let alone = once(1);
    assert_eq!(once(2), alone);
    assert_eq!(once(7), alone);
}

#[test]
fn quantiles_of_more_values_than_fit_in_memory_are_exact() {
    for dtype in [DType::Float32, DType::Float64, DType::Int64, DType::UInt64, DType::Int16] {
        let array = field(dtype, &[60, 50], &[16, 16]).open();
        for (q, over) in [(0.0, vec![]), (0.37, vec![]), (1.0, vec![]), (0.5, vec![0_usize])] {
            let query = Query::new(Operation::Quantile(q)).over(over).skip_nan();
            let plenty = query.run(&array).unwrap();
            let plan = query.clone().plan(&array).unwrap();
            let little = super::order::by_digits(&plan, &array).unwrap();
            assert_eq!(little, plenty);
        }
    }
}

#[test]
fn integers_never_overflow_silently() {
    let mut large = field(DType::UInt64, &[4, 3], &[2, 3]);
    large.seed = 0;
    let array = large.open();
    let values = values_of(&array.read(&Selection::all()).unwrap());
    let exact: i128 = values.iter().filter_map(|value| value.whole).sum();
    let sum = Query::new(Operation::Sum).run(&array).unwrap();
    assert_eq!(sum.column.integers, [exact]);
    let product = Query::new(Operation::Product).filter("> 0".parse().unwrap()).run(&array).unwrap();
    assert_eq!(product.values().unwrap().dtype, DType::Float64);
}

#[test]
fn an_empty_selection_has_defined_answers() {
    let array = field(DType::Float32, &[4, 3], &[2, 2]).open();
    let none = |operation| {
        Query::new(operation).filter("> 1e9".parse().unwrap()).run(&array).unwrap().scalar().unwrap()
    };
    assert_eq!(none(Operation::Sum), Some(0.0));
    assert_eq!(none(Operation::Count), Some(0.0));
    assert_eq!(none(Operation::Mean), None);
    assert_eq!(none(Operation::Min), None);
    assert_eq!(none(Operation::Median), None);
    let nothing = Query::new(Operation::Sum).select("[2:2]".parse().unwrap());
    assert_eq!(nothing.run(&array).unwrap().scalar().unwrap(), Some(0.0));
    let kept = nothing.over([1]).run(&array).unwrap();
    assert_eq!(kept.shape(), [0]);
}

#[test]
fn every_operation_defines_its_answer_for_nan() {
    let mut stored = field(DType::Float64, &[64], &[16]);
    stored.seed = 11;
    let array = stored.open();
    let ask = |operation, skip: bool| {
        let query = Query::new(operation);
        (if skip { query.skip_nan() } else { query }).run(&array).unwrap().scalar().unwrap().unwrap()
    };
    assert!(ask(Operation::NanCount, false) > 0.0);
    for operation in [Operation::Min, Operation::Max, Operation::Sum, Operation::Mean, Operation::Median] {
        assert!(ask(operation, false).is_nan(), "{operation:?}");
        assert!(ask(operation, true).is_finite(), "{operation:?}");
    }
}

#[test]
fn missing_axes_and_labels_are_rejected() {
    let array = field(DType::Float32, &[4, 3], &[2, 2]).open();
    let refusal = |query: Query| query.run(&array).unwrap_err().to_string();
    assert!(refusal(Query::new(Operation::Sum).over(["z"])).contains("no dimension z; there are t, y"));
    assert!(refusal(Query::new(Operation::Sum).over([2])).contains("no axis 2"));
    assert!(refusal(Query::new(Operation::Sum).over([0, 0])).contains("twice"));
    assert!(refusal(Query::new(Operation::Sum).labelled("t", "a")).contains("has no labels"));
    assert!(refusal(Query::new(Operation::Quantile(2.0))).contains("between 0 and 1"));
    assert!(refusal(Query::new(Operation::NullCount { fill: None })).contains("fill"));
    assert!(refusal(Query::new(Operation::Sum).window(Window::bins(0, 9))).contains("does not fit"));
    assert!(refusal(Query::new(Operation::Sum).over([0]).memory(4)).contains("but the limit is"));
}

/// A false statistic changes an answer only if the caller trusts hints.
#[test]
fn hints_do_not_change_answers() {
    let mut memory = {
        let stored = field(DType::Int16, &[8], &[4]);
        let reader = stored.open();
        let schema = reader.schema().clone();
        let blob = MemoryBlob::new(
            "memory",
            [1_i16, 2, 3, 4, 5, 6, 7, 8].iter().flat_map(|v| v.to_ne_bytes()).collect::<Vec<_>>(),
        );
        Memory {
            schema,
            blob: Arc::new(blob),
            chunks: vec![Some(0), Some(8)],
            plain: true,
            listed: false,
            statistics: Some(true),
        }
    };
    let query = Query::new(Operation::Sum).filter("> 2".parse().unwrap());
    let reader =
        |memory: Memory| ArrayReader::new(Arc::new(memory), Arc::new(Nothing("memory".into())), 1 << 20);
    let copy = |memory: &Memory| Memory {
        schema: memory.schema.clone(),
        blob: Arc::clone(&memory.blob),
        chunks: memory.chunks.clone(),
        ..*memory
    };
    assert_eq!(query.run(&reader(copy(&memory))).unwrap().scalar().unwrap(), Some(33.0));
    let trusting = Query { trust_hints: true, ..query.clone() };
    assert_eq!(trusting.run(&reader(copy(&memory))).unwrap().scalar().unwrap(), Some(0.0));
    memory.statistics = Some(false);
    let array = reader(memory);
    assert_eq!(query.plan(&array).unwrap().explain(&array).unwrap().skipped, 2);
}

#[test]
fn plans_know_their_cost() {
    let array = field(DType::Float32, &[40, 40], &[10, 10]).open();
    let told = Query::new(Operation::Mean)
        .select("[:20, 5]".parse().unwrap())
        .plan(&array)
        .unwrap()
        .explain(&array)
        .unwrap();
    // For each chunk, the bytes from the first wanted cell to the last.
    assert_eq!((told.chunks, told.stored_bytes, told.skipped), (2, 2 * (9 * 40 + 4), 0));
    assert_eq!(told.shape, Vec::<u64>::new());
    let other = field(DType::Float32, &[41, 40], &[10, 10]).open();
    let plan = Query::new(Operation::Mean).plan(&array).unwrap();
    assert!(plan.run(&other).unwrap_err().to_string().contains("another array"));
    assert!(plan.merge(Vec::new()).is_err());
}

mod pieces;
