//! `tet convert`: any format to any other.

use hyperslab::convert::{ConvertOptions, convert};
use hyperslab::{Error, Filter, Format, Result, Selection};
use serde_json::json;

use crate::args::ConvertArgs;
use crate::{Answer, output, paint, pretty, progress};

pub(crate) fn run(args: &ConvertArgs) -> Result<Answer> {
    let format = match &args.to {
        Some(name) => name.parse()?,
        None => Format::from_ending(&args.out).ok_or_else(|| {
            Error::invalid(format!("{}: the ending tells no format; --to names one", args.out.display()))
        })?,
    };
    let mut options = ConvertOptions {
        node: args.node.clone(),
        chunk_shape: args.chunks.clone(),
        shard_shape: args.shards.clone(),
        filters: args.filter.as_deref().map(filters).transpose()?,
        replace: args.force,
        strict: args.strict,
        ..ConvertOptions::default()
    };
    for text in &args.select {
        options.selection = options.selection.and(text.parse::<Selection>()?);
    }
    if let Some(memory) = &args.memory {
        options.memory = pretty::parse_bytes(memory)?;
    }
    let source = super::open(&args.open)?;
    let started = std::time::Instant::now();
    let report = progress::with_bar(|progress| convert(&source, &args.out, format, &options, progress))?;
    if args.json {
        output::print_json(&json!({
            "path": args.out.display().to_string(), "format": format.name(), "arrays": report.arrays,
            "bytes": report.bytes, "notes": report.notes,
        }))?;
        return Ok(Answer::Yes);
    }
    output::print(|out| {
        let arrays =
            if report.arrays == 1 { "1 array".to_owned() } else { format!("{} arrays", report.arrays) };
        let speed = pretty::bytes((report.bytes as f64 / started.elapsed().as_secs_f64().max(1e-9)) as u64);
        let about = format!("{arrays}, {}, {speed}/s", pretty::bytes(report.bytes));
        writeln!(out, "{} {}  {}", paint::good("✓"), args.out.display(), paint::dim(about))?;
        for note in &report.notes {
            writeln!(out, "{} {note}", paint::doubtful("!"))?;
        }
        Ok(())
    })?;
    Ok(Answer::Yes)
}

/// A pipeline as people write it: `shuffle,zstd:3`.
fn filters(text: &str) -> Result<Vec<Filter>> {
    if text == "none" {
        return Ok(Vec::new());
    }
    text.split(',')
        .map(|part| match part.trim().split_once(':') {
            None if part.trim().is_empty() => Err(Error::invalid(format!("{text:?}: a filter is missing"))),
            None => Ok(Filter::new(part.trim())),
            Some((name, level)) => {
                let level: i64 = level
                    .parse()
                    .map_err(|_| Error::invalid(format!("{part:?}: {level:?} is not a level")))?;
                Ok(Filter::new(name).with("level", level))
            }
        })
        .collect()
}
