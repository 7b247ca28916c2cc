//! The Rust crates that read HDF5, run on the same cases.

use std::hint::black_box;
use std::path::Path;

use crate::data::{self, BOX};
use crate::harness::{Outcome, median};

/// The median time of a case with the named crate.
pub(super) fn run(name: &str, case: &str, file: &Path) -> Outcome<f64> {
    if case.starts_with("write_") {
        return super::crates_write::run(name, case, file);
    }
    match name {
        "rust-hdf5" => rust_hdf5(case, file),
        "hdf5-pure" => hdf5_pure(case, file),
        "hdf5-reader" => hdf5_reader(case, file, false),
        "hdf5-reader-parallel" => hdf5_reader(case, file, true),
        _ => Err(format!("no contender {name}").into()),
    }
}

/// Times work that creates a value. The value is dropped after the timing.
fn each<T, E: Into<Box<dyn std::error::Error>>>(mut work: impl FnMut() -> Result<T, E>) -> Outcome<f64> {
    median(|| {
        black_box(work().map_err(Into::into)?);
        Ok(())
    })
}

fn lacks<T>(what: &str) -> Outcome<T> {
    Err(format!("has no {what}").into())
}

fn rust_hdf5(case: &str, path: &Path) -> Outcome<f64> {
    use rust_hdf5::H5File;

    match case {
        "first" => each(|| H5File::open(path)?.dataset("x")?.read_slice::<i32>(&[0], &[1])),
        "all" => each(|| H5File::open(path)?.dataset("x")?.read_raw::<i32>()),
        "references" => lacks("listing of chunks"),
        "one" => each(|| H5File::open(path)?.dataset("d054321")?.read_raw::<i32>()),
        "names" => each(|| H5File::open(path)?.root_group().link_names()),
        _ => {
            let file = H5File::open(path)?;
            let field = file.dataset("field")?;
            match case {
                "full" => each(|| field.read_raw::<f32>()),
                "into" => {
                    let mut buffer = vec![0_f32; field.total_elements()];
                    each(|| field.read_raw_into(&mut buffer))
                }
                _ => {
                    let shape: Vec<u64> = field.shape().iter().map(|&extent| extent as u64).collect();
                    let starts: Vec<Vec<usize>> = data::boxes(&shape)
                        .into_iter()
                        .map(|start| start.into_iter().map(|at| at as usize).collect())
                        .collect();
                    let counts = [BOX as usize; 3];
                    each(|| {
                        starts
                            .iter()
                            .map(|start| field.read_slice::<f32>(start, &counts))
                            .collect::<Result<Vec<_>, _>>()
                    })
                }
            }
        }
    }
}

fn hdf5_pure(case: &str, path: &Path) -> Outcome<f64> {
    use hdf5_pure::File;

    match case {
        "full" => {
            let file = File::open(path)?;
            let field = file.dataset("field")?;
            each(|| field.read_f32())
        }
        "into" => lacks("reading into a buffer"),
        "boxes" => lacks("reading of boxes"),
        "first" => each(|| File::open(path)?.dataset("x")?.read_i32_rows(0, 1)),
        "all" => each(|| File::open(path)?.dataset("x")?.read_i32()),
        "references" => each(|| File::open(path)?.dataset("x")?.chunks()),
        "one" => each(|| File::open(path)?.dataset("d054321")?.read_i32()),
        "names" => each(|| File::open(path)?.root().datasets()),
        _ => Err(format!("no case {case}").into()),
    }
}

fn hdf5_reader(case: &str, path: &Path, parallel: bool) -> Outcome<f64> {
    use hdf5_reader::{Hdf5File, OpenOptions, SliceInfo, SliceInfoElem};

    // Without the limits meant for untrusted files, and without a chunk cache that would answer repeated reads.
    let open = || {
        let options = OpenOptions::default().with_max_read_bytes(usize::MAX).with_chunk_cache_bytes(0);
        Hdf5File::open_with_options(path, options)
    };
    let slice = |start: u64, count: u64| SliceInfoElem::Slice { start, end: start + count, step: 1 };
    match case {
        "first" => {
            let first = SliceInfo { selections: vec![slice(0, 1)] };
            each(|| open()?.dataset("/x")?.read_slice::<i32>(&first))
        }
        "all" if parallel => each(|| open()?.dataset("/x")?.read_array_parallel::<i32>()),
        "all" => each(|| open()?.dataset("/x")?.read_array::<i32>()),
        "references" => {
            each(|| Ok::<_, hdf5_reader::error::Error>(open()?.dataset("/x")?.iter_chunks()?.count()))
        }
        "one" => each(|| open()?.dataset("/d054321")?.read_array::<i32>()),
        "names" => each(|| open()?.root_group()?.member_names()),
        _ => {
            let field = open()?.dataset("/field")?;
            match case {
                "full" if parallel => each(|| field.read_array_parallel::<f32>()),
                "full" => each(|| field.read_array::<f32>()),
                "into" if parallel => lacks("parallel reading into a buffer"),
                "into" => {
                    let mut buffer = vec![0_f32; usize::try_from(field.num_elements()?)?];
                    each(|| field.read_into(&mut buffer))
                }
                _ => {
                    let boxes: Vec<SliceInfo> = data::boxes(field.shape())
                        .iter()
                        .map(|start| SliceInfo {
                            selections: start.iter().map(|&at| slice(at, BOX)).collect(),
                        })
                        .collect();
                    let read = |wanted| match parallel {
                        true => field.read_slice_parallel::<f32>(wanted),
                        false => field.read_slice::<f32>(wanted),
                    };
                    each(|| boxes.iter().map(read).collect::<Result<Vec<_>, _>>())
                }
            }
        }
    }
}
