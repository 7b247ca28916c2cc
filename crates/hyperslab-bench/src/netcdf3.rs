//! NetCDF classic: fixed and record variables against the NetCDF library and scipy, and against copies in memory.

use std::hint::black_box;

use hyperslab::Selection;

use crate::harness::{Bench, OURS, Outcome, timed};
use crate::peers::{make_in, timed_in};

/// The script of the peers.
const SCRIPT: &str = "netcdf3.py";
/// What is read: its name, the case of the script, the selection.
const READS: [(&str, &str, &str); 2] =
    [("full read", "full", "[...]"), ("strided read", "strided", "[::4, ::8, ::8]")];

pub(crate) fn run(bench: &mut Bench) -> Outcome {
    for kind in ["fixed", "records"] {
        for (what, case, selection) in READS {
            let line = format!("netcdf3 {kind} {what}, 256 MiB");
            if bench.wants(&line) {
                read(bench, &line, (kind, case), &selection.parse()?)?;
            }
        }
    }
    Ok(())
}

/// Each library into a new array in the machine's byte order.
fn read(bench: &mut Bench, line: &str, (kind, case): (&str, &str), selection: &Selection) -> Outcome {
    let make = format!("make_{kind}");
    let path = bench.file(&format!("{kind}.nc"), |path| make_in(bench, SCRIPT, &make, [path]))?;
    let store = hyperslab::open(&path)?;
    let reader = store.array("/field")?;
    let mut bytes = 0;
    let ours = timed(OURS, || {
        let values = black_box(reader.read_vec::<f32>(selection)?);
        bytes = values.len() * size_of::<f32>();
        Ok(())
    })?;
    let source = vec![1_u8; bytes];
    let copy = timed("memory copy", || {
        black_box(black_box(&source).clone());
        Ok(())
    })?;
    let mut times = vec![ours, copy];
    for (name, library) in [("scipy", "scipy"), ("netCDF4-python", "netCDF4")] {
        times.extend(timed_in(bench, SCRIPT, name, case, [library.as_ref(), path.as_os_str()])?);
    }
    bench.line(line, times, "");
    Ok(())
}
