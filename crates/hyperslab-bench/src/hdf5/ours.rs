//! Our side of the HDF5 cases.

use std::hint::black_box;
use std::ops::ControlFlow;
use std::path::Path;

use hyperslab::driver::Buffer;
use hyperslab::{ArrayReader, Node, Region, Selection};

use crate::harness::{Outcome, median};
use crate::reads;

/// The median time of a case.
pub(super) fn run(case: &str, file: &Path) -> Outcome<f64> {
    match case {
        "full" | "into" | "boxes" => field(case, &hyperslab::open(file)?.array("/field")?),
        "first" => median(|| {
            let start = Selection::region(&Region::new(&[0], &[1]))?;
            black_box(hyperslab::open(file)?.array("/x")?.read(&start)?);
            Ok(())
        }),
        "all" => median(|| {
            black_box(hyperslab::open(file)?.array("/x")?.read(&Selection::all())?);
            Ok(())
        }),
        "references" => median(|| references(file)),
        "one" => median(|| {
            black_box(hyperslab::open(file)?.array("/d054321")?.read(&Selection::all())?);
            Ok(())
        }),
        "names" => median(|| {
            black_box(hyperslab::open(file)?.children("/")?);
            Ok(())
        }),
        _ => Err(format!("no case {case}").into()),
    }
}

fn field(case: &str, reader: &ArrayReader) -> Outcome<f64> {
    let all = Selection::all();
    match case {
        "full" => median(|| {
            black_box(reader.read(&all)?);
            Ok(())
        }),
        "into" => {
            let bytes = reader.schema().bytes().ok_or("no fixed size")?;
            let mut buffer = Buffer::zeroed(usize::try_from(bytes)?)?;
            median(|| Ok(reader.read_into(&all, buffer.as_mut_slice())?))
        }
        _ => {
            let selections = reads::box_selections(reader)?;
            median(|| {
                for selection in &selections {
                    black_box(reader.read(selection)?);
                }
                Ok(())
            })
        }
    }
}

fn references(file: &Path) -> Outcome {
    let Node::Array(array) = hyperslab::open(file)?.node("/x")? else { return Err("no array".into()) };
    let mut references = Vec::new();
    array.visit_chunks(&mut |chunk, reference| {
        references.push((chunk, reference));
        Ok(ControlFlow::Continue(()))
    })?;
    black_box(references);
    Ok(())
}
