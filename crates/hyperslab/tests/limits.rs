//! Every operation respects threads, memory limits and plans.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::Arc;

use hyperslab::driver::Plan;
use hyperslab::query::{Operation, Query};
use hyperslab::{
    ArraySpec, Attributes, CreateOptions, DType, Elements, Format, Grid, OpenOptions, OpenStore, Positions,
    Region, RegionWriter, Selection, Threads, Values, create, open_with,
};

fn write(path: &Path, name: &str, values: &Values, chunk: u64) {
    let options = CreateOptions::default().with_append(path.exists());
    let mut sink = create(path, Format::ZARR, &options).unwrap();
    if !options.append {
        sink.group("/", &Attributes::new()).unwrap();
    }
    let spec = ArraySpec::new(values.dtype.clone(), Grid::new(&values.shape, &[chunk]).unwrap());
    let array = RegionWriter::new(sink.array(name, &spec).unwrap(), values.dtype.clone(), spec.fill.clone());
    array.assign(&Region::whole(&values.shape), values).unwrap();
    array.finish().unwrap();
    drop(array);
    sink.commit().unwrap();
}

fn numbers(count: u64) -> Values {
    let bytes: Vec<u8> = (0..count).flat_map(|number| (number as f64).to_ne_bytes()).collect();
    Values::new(DType::Float64, &[count], Elements::fixed(bytes)).unwrap()
}

fn store(folder: &Path) -> OpenStore {
    let path = folder.join("x.zarr");
    write(&path, "/a", &numbers(100), 10);
    write(&path, "/b", &numbers(100), 20);
    let words: Vec<String> = (0..1000).map(|number| format!("{number:0>100}")).collect();
    let words = Values::new(DType::String, &[1000], Elements::variable(&words)).unwrap();
    write(&path, "/words", &words, 100);
    open_with(&path, &OpenOptions::default().with_memory(64 << 10)).unwrap()
}

#[test]
fn plans_of_another_array_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let (a, b) = (store.array("/a").unwrap(), store.array("/b").unwrap());
    let plan = Plan::new(&a.schema().grid, Positions::whole(&[100])).unwrap();
    let mut out = vec![0; 800];
    a.fill(&plan, &mut out).unwrap();
    assert!(b.fill(&plan, &mut out).unwrap_err().to_string().contains("another array"));
    assert!(b.view(&plan).unwrap_err().to_string().contains("another array"));
}

#[test]
fn variable_length_elements_count_against_the_memory_limit() {
    let folder = tempfile::tempdir().unwrap();
    let words = store(folder.path()).array("/words").unwrap();
    assert_eq!(words.read(&"[:10]".parse().unwrap()).unwrap().len(), 10);
    let refused = words.read(&Selection::all()).unwrap_err().to_string();
    assert!(refused.contains("but the limit is 65536"), "{refused}");
}

#[test]
fn queries_use_the_given_threads() {
    let folder = tempfile::tempdir().unwrap();
    let a = store(folder.path()).array("/a").unwrap();
    let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap());
    let mut answers = Vec::new();
    for threads in [Threads::Shared, Threads::Caller, Threads::Pool(pool)] {
        let count = threads.count();
        let array = a.clone().with_threads(threads);
        assert_eq!(array.context().threads.count(), count);
        answers.push(Query::new(Operation::Mean).run(&array).unwrap().scalar().unwrap());
    }
    assert_eq!(answers, [Some(49.5); 3]);
}
