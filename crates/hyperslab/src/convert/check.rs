//! Rejects options that the target's format, or every array, lacks.

use hyperslab_core::{Error, Result, Variant, did_you_mean};

use super::ConvertOptions;
use super::spec::unlimited_axes;
use crate::Format;

/// Rejects shards, unlimited axes and filters that the format does not have. An unknown filter gets a suggestion.
pub(super) fn check_format(format: Format, options: &ConvertOptions) -> Result<()> {
    let (capabilities, known) = (format.info().capabilities, format.info().filters);
    let name = options.variant.map_or(format.name(), Variant::name);
    if options.shard_shape.is_some() && !capabilities.shards {
        let others = Format::all().into_iter().filter(|other| other.info().capabilities.shards);
        let others: Vec<&str> = others.map(Format::name).collect();
        return Err(Error::invalid(format!(
            "{name} stores have no shards; only those of {} do",
            others.join(" and ")
        )));
    }
    if !options.unlimited.is_empty() && !capabilities.grow {
        return Err(Error::invalid(format!("{name} arrays cannot grow, so no axis can be unlimited")));
    }
    let mut wanted = options.filters.iter().flatten();
    if capabilities.no_filters
        && let Some(filter) = wanted.next()
    {
        return Err(Error::invalid(format!(
            "{name} stores elements as they are, without filters such as {}",
            filter.name
        )));
    }
    match wanted.find(|filter| !known.is_empty() && !known.contains(&filter.name.as_str())) {
        Some(unknown) => Err(Error::invalid(format!(
            "no filter {} in {name}{}",
            unknown.name,
            did_you_mean(&unknown.name, known.iter().copied())
        ))),
        None => Ok(()),
    }
}

/// A note if chunks were requested in a format without them.
pub(super) fn unused_chunks(format: Format, options: &ConvertOptions) -> Option<String> {
    let wanted =
        options.chunk_shape.is_some() || !options.chunk_extents.is_empty() || options.chunk_bytes.is_some();
    let name = options.variant.map_or(format.name(), Variant::name);
    (wanted && format.info().capabilities.no_chunks)
        .then(|| format!("{name} stores arrays as a whole; the requested chunks have no effect"))
}

/// Rejects axes and chunks for dimensions that no array has. `arrays` yields the dimension names and the rank of each.
pub(super) fn check_arrays<'a>(
    options: &ConvertOptions,
    arrays: impl Iterator<Item = (&'a [Option<String>], usize)> + Clone,
) -> Result<()> {
    let mut names: Vec<&str> =
        arrays.clone().flat_map(|(names, _)| names.iter().flatten().map(String::as_str)).collect();
    names.sort_unstable();
    names.dedup();
    for wanted in &options.unlimited {
        if !arrays.clone().any(|(names, _)| unlimited_axes(names, wanted).next().is_some()) {
            let hint = did_you_mean(wanted, names.iter().copied());
            return Err(Error::invalid(format!("no axis {wanted} to make unlimited{hint}")));
        }
    }
    for (wanted, extent) in &options.chunk_extents {
        if !names.contains(&wanted.as_str()) {
            let hint = did_you_mean(wanted, names.iter().copied());
            return Err(Error::invalid(format!("chunks {wanted}={extent}: no dimension {wanted}{hint}")));
        }
    }
    let shards = options.shard_shape.as_ref().filter(|shape| shape.len() > 1);
    for (what, shape) in [("chunks", options.chunk_shape.as_ref()), ("shards", shards)] {
        if let (Some(shape), Some((_, first))) = (shape, arrays.clone().next())
            && !arrays.clone().any(|(_, rank)| rank == shape.len())
        {
            let text = shape.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
            let count = |axes: usize| if axes == 1 { "1 axis".to_owned() } else { format!("{axes} axes") };
            return Err(Error::invalid(format!(
                "{what} of {text} have {}, but the array has {}; give one extent per axis",
                count(shape.len()),
                count(first)
            )));
        }
    }
    Ok(())
}
