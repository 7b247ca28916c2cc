//! `tet diff`: compares values of any formats and chunkings.

use std::path::Path;

use hyperslab::diff::{DiffOptions, Tolerance, diff};
use hyperslab::{OpenStore, Result};

use crate::args::DiffArgs;
use crate::{Answer, output, paint, pretty};

/// The number of differences shown by default.
const SHOWN: usize = 20;

pub(crate) fn run(args: &DiffArgs) -> Result<Answer> {
    let remote = super::remote_options(&args.storage)?;
    let options = super::default_options()?.with_remote(remote).with_external(args.external.rule()?);
    let open = |path: &Path| -> Result<OpenStore> { hyperslab::open_with(path, &options) };
    let (a, b) = (open(&args.a)?, open(&args.b)?);
    let mut options = DiffOptions::default()
        .with_tolerance(Tolerance { relative: args.rtol, absolute: args.atol })
        .with_attributes(!args.no_attributes)
        .with_values_only(args.values_only);
    if let Some(memory) = &args.memory {
        options.memory = pretty::parse_bytes(memory)?;
    }
    let node = args.node.as_deref().unwrap_or("/");
    let other = args.other_node.as_deref().unwrap_or(node);
    let report = diff((&a, node), (&b, other), &options)?;
    if args.json {
        let mut document = report.to_json();
        document["a"] = hyperslab::location_name(&args.a).into();
        document["b"] = hyperslab::location_name(&args.b).into();
        output::print_json(&document)?;
    } else if !args.quiet {
        output::print(|out| {
            let shown = if args.full { report.differences.len() } else { SHOWN };
            for difference in report.differences.iter().take(shown) {
                let what = format!("{:<11}", difference.code);
                writeln!(
                    out,
                    "  {} {}  {what} {}",
                    paint::bad("✗"),
                    paint::strong(&difference.path),
                    difference.detail
                )?;
            }
            if report.differences.len() > shown {
                writeln!(
                    out,
                    "  {}",
                    paint::dim(format!("… {} more; --full lists all", report.differences.len() - shown))
                )?;
            }
            let nodes =
                if report.nodes == 1 { "1 node".to_owned() } else { format!("{} nodes", report.nodes) };
            let about = paint::dim(format!("{nodes}, {} elements compared", report.elements));
            if report.same() {
                writeln!(out, "{}  {about}", paint::good("same"))
            } else {
                writeln!(out, "{}  {about}", paint::bad("different"))
            }
        })?;
    }
    Ok(if report.same() { Answer::Yes } else { Answer::No })
}
