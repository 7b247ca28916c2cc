//! `tet convert`: any format to any other.

use std::path::{Path, PathBuf};

use hyperslab::combine::{CombineOptions, concat, expand};
use hyperslab::conventions::level_path;
use hyperslab::convert::{
    AUTO_CHUNK_BYTES, ConvertOptions, TableOptions, convert, convert_multiscale, convert_to_rows,
    is_file_of_rows,
};
use hyperslab::{Error, Filter, Format, Result, Selection, extension_hint, format_of_target};
use serde_json::json;

use crate::args::ConvertArgs;
use crate::{Answer, output, paint, pretty, progress};

pub(crate) fn run(args: &ConvertArgs) -> Result<Answer> {
    let to_rows = args.to.is_none() && is_file_of_rows(&args.out);
    let (format, variant) = if to_rows {
        (None, None)
    } else {
        let found = format_of_target(&args.out, args.to.as_deref(), args.append)?;
        let (format, variant) = found.ok_or_else(|| {
            Error::invalid(format!(
                "{}: cannot infer the format from the extension{}; use --to",
                hyperslab::location_name(&args.out),
                extension_hint(&args.out)
            ))
        })?;
        (Some(format), variant)
    };
    let mut options = ConvertOptions::default()
        .with_node(args.node.clone())
        .with_unlimited(args.unlimited.clone())
        .with_shard_shape(args.shards.clone())
        .with_filters(args.filter.as_deref().map(Filter::parse_list).transpose()?)
        .with_replace(args.force)
        .with_append(args.append)
        .with_strict(args.strict)
        .with_variant(variant)
        .with_raw(args.raw)
        .with_materialise(args.materialise)
        .with_provenance(args.provenance)
        .with_sync(args.sync)
        .with_remote(super::remote_options(&args.open.storage)?);
    for text in &args.select {
        options.selection = options.selection.and(text.parse::<Selection>()?);
    }
    if let Some(memory) = &args.memory {
        options.memory = pretty::parse_bytes(memory)?;
    }
    options.table = TableOptions::default()
        .with_dimensions(args.dimensions.clone())
        .with_duplicates(args.duplicates.then_some(true))
        .with_order(args.order.as_deref().map(str::parse).transpose()?);
    options.page_size = args.page_size.as_deref().map(pretty::parse_bytes).transpose()?;
    options.preamble = args.user_block.as_deref().map(user_block).transpose()?.map(Into::into);
    options.geometry.kind.clone_from(&args.geometry);
    options.geometry.levels = args.levels;
    let writes_geometry = format.is_some_and(Format::writes_geometry);
    if writes_geometry {
        options.geometry.chunk_shape = args.chunks.as_deref().map(sizes_in_space).transpose()?;
    } else if args.geometry.is_some() {
        return Err(Error::invalid("--geometry only applies to geometry stores (.zv)"));
    }
    let image = (args.levels > 0 && !writes_geometry)
        .then(|| Ok::<_, Error>((args.levels, args.downsample.parse()?)))
        .transpose()?;
    if image.is_some() && (format.is_none() || args.concat.is_some()) {
        return Err(Error::invalid(
            "--levels only applies to geometry (.zv) and to images converted from one input (.zarr)",
        ));
    }
    options.drop.clone_from(&args.drop);
    options.keep.clone_from(&args.keep);
    for text in &args.rename {
        let (old, new) = text
            .split_once('=')
            .filter(|(old, new)| !old.is_empty() && !new.is_empty())
            .ok_or_else(|| {
                Error::invalid(format!("--rename {text}: expected OLD=NEW, such as --rename t2m=temperature"))
            })?;
        options.rename.push((old.to_owned(), new.to_owned()));
    }
    match args.chunks.as_deref().filter(|_| !writes_geometry).map(chunks).transpose()? {
        Some(Chunks::Shape(shape)) => options.chunk_shape = Some(shape),
        Some(Chunks::Extents(extents)) => options.chunk_extents = extents,
        Some(Chunks::Bytes(bytes)) => options.chunk_bytes = Some(bytes),
        None => {}
    }
    let inputs = expand(&args.inputs)?;
    // Do not map the sources: if another program truncates one, reading it fails cleanly and leftovers are removed.
    let open = super::open_options(&args.open)?.with_mapped(false);
    let started = std::time::Instant::now();
    let report = progress::with_bar(!args.quiet, |progress| match (&args.concat, format) {
        (Some(dimension), Some(format)) => {
            let combining =
                CombineOptions::default().with_open(open).with_attributes(args.merge_attributes.parse()?);
            concat(&inputs, dimension, (&args.out, format), &combining, &options, progress)
        }
        (Some(_), None) => {
            Err(Error::invalid("--concat joins arrays; choose an output format for arrays, such as .zarr"))
        }
        (None, format) => {
            let source = hyperslab::open_with(only_input(&inputs)?, &open)?;
            let mut options = options.clone();
            if let Some(level) = args.level {
                options.node = Some(level_path(&source, args.node.as_deref(), level)?);
            }
            match format {
                Some(format) => match image {
                    Some(image) => convert_multiscale(&source, &args.out, format, image, &options, progress),
                    None => convert(&source, &args.out, format, &options, progress),
                },
                None => convert_to_rows(&source, &args.out, &options, progress),
            }
        }
    })?;
    let ending = args.out.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    let form = format.map_or(ending.as_str(), |format| format.name());
    let complete = args.skip_unsupported || report.dropped().next().is_none();
    let answer = if complete { Answer::Yes } else { Answer::No };
    if args.json {
        output::print_json(&json!({
            "path": hyperslab::location_name(&args.out), "format": form, "arrays": report.arrays, "rows": report.rows,
            "bytes": report.bytes, "copied_chunks": report.copied_chunks, "notes": report.notes(),
            "losses": report.losses,
        }))?;
        return Ok(answer);
    }
    output::report(|out| {
        let arrays = match (report.rows, report.arrays) {
            (0, arrays) => pretty::counted(arrays, "array"),
            (rows, _) if writes_geometry => format!("{rows} vertices"),
            (rows, _) => pretty::counted(rows, "row"),
        };
        let speed = pretty::bytes((report.bytes as f64 / started.elapsed().as_secs_f64().max(1e-9)) as u64);
        let about = format!("{arrays}, {}, {speed}/s", pretty::bytes(report.bytes));
        let sign = if complete { paint::good("✓") } else { paint::doubtful("!") };
        if !args.quiet {
            writeln!(out, "{sign} {}  {}", hyperslab::location_name(&args.out), paint::dim(about))?;
        }
        for loss in &report.losses {
            writeln!(out, "{} {loss}", paint::doubtful("!"))?;
        }
        if !complete {
            writeln!(out, "some content was not converted; use --skip-unsupported to accept this")?;
        }
        Ok(())
    })?;
    Ok(answer)
}

fn only_input(inputs: &[PathBuf]) -> Result<&PathBuf> {
    match inputs {
        [input] => Ok(input),
        several => Err(Error::invalid(format!(
            "{} inputs and one output; use --concat DIMENSION to join them, as in --concat time",
            several.len()
        ))),
    }
}

/// The bytes of a user block, padded to a length that HDF5 has; none for `none`.
fn user_block(path: &Path) -> Result<Vec<u8>> {
    const MOST: u64 = 16 << 20;
    if path.as_os_str() == "none" {
        return Ok(Vec::new());
    }
    let name = path.display().to_string();
    let failed = |problem| Error::io(name.as_str(), problem);
    let length = path.metadata().map_err(failed)?.len();
    if length > MOST {
        return Err(Error::invalid(format!(
            "{name}: the user block has {length} bytes, but the limit is {MOST}"
        )));
    }
    let mut block = std::fs::read(path).map_err(failed)?;
    block.resize(block.len().max(512).next_power_of_two(), 0);
    Ok(block)
}

/// A parsed `--chunks` option.
enum Chunks {
    Shape(Vec<u64>),
    Extents(Vec<(String, u64)>),
    Bytes(u64),
}

/// `64,64,64`, or `4MiB`: a number alone is a shape of one dimension.
fn chunks(text: &str) -> Result<Chunks> {
    if text == "auto" {
        return Ok(Chunks::Bytes(AUTO_CHUNK_BYTES));
    }
    if text.contains('=') {
        return text.split(',').map(extent).collect::<Result<_>>().map(Chunks::Extents);
    }
    let shape: std::result::Result<Vec<u64>, _> = text.split(',').map(|part| part.trim().parse()).collect();
    match shape {
        Ok(shape) => Ok(Chunks::Shape(shape)),
        Err(_) => pretty::parse_bytes(text).map(Chunks::Bytes).map_err(|_| {
            Error::invalid(format!(
                "{text:?} is neither a shape (64,64), extents (time=31), a size (4MiB) nor auto"
            ))
        }),
    }
}

/// `time=31`, or `lat=all`.
fn extent(text: &str) -> Result<(String, u64)> {
    let wrong =
        || Error::invalid(format!("--chunks {text}: expected DIMENSION=EXTENT, such as time=31 or lat=all"));
    let (name, extent) = text.split_once('=').ok_or_else(wrong)?;
    let extent = match extent.trim() {
        "all" | "-1" => u64::MAX,
        number => number.parse().ok().filter(|extent| *extent > 0).ok_or_else(wrong)?,
    };
    Ok((name.trim().to_owned(), extent))
}

/// `62.5,62.5,10`, or one size for all axes.
fn sizes_in_space(text: &str) -> Result<Vec<f64>> {
    let sizes: std::result::Result<Vec<f64>, _> = text.split(',').map(|part| part.trim().parse()).collect();
    sizes.map_err(|_| Error::invalid(format!("{text:?} is not a list of sizes of a chunk along the axes")))
}
