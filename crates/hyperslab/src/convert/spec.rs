//! Describes arrays to the target, based on the source's own description.

use std::collections::HashSet;
use std::sync::Arc;

use hyperslab_core::{
    ArraySchema, ArraySink, ArraySpec, Attribute, Attributes, DType, Error, Filter, Grid, LabelOrder, Labels,
    Positions, Result, Sink, StoredLayout, Variant, product,
};

use super::subset::{cut_labels, is_whole};
use super::{ConvertOptions, ConvertReport};
use crate::Format;

/// The description of an array for the target.
pub(super) fn spec_of(
    schema: &ArraySchema,
    positions: &Positions,
    options: &ConvertOptions,
    same_format: bool,
) -> Result<ArraySpec> {
    let shape = positions.shape();
    let kept = |index: usize| positions.axes.get(index).is_some_and(|axis| axis.keep);
    let keep = |values: &[u64]| -> Vec<u64> {
        values.iter().enumerate().filter(|(index, _)| kept(*index)).map(|(_, value)| *value).collect()
    };
    let item = schema.dtype.size().unwrap_or(16) as u64;
    let mut chunk_shape = match (&options.chunk_shape, options.chunk_bytes) {
        (Some(chunk_shape), _) if chunk_shape.len() == shape.len() => chunk_shape.clone(),
        (None, Some(bytes)) => chunk_shape_of(&shape, item, bytes),
        _ if schema.chunked => keep(schema.grid.chunk_shape()),
        _ => default_chunk_shape(&shape, item),
    };
    let names = schema.dimensions.iter().enumerate().filter(|(index, _)| kept(*index)).map(|(_, name)| name);
    for (axis, name) in names.enumerate() {
        let wanted = options.chunk_extents.iter().find(|(wanted, _)| name.as_ref() == Some(wanted));
        if let Some((_, extent)) = wanted {
            chunk_shape[axis] = (*extent).min(shape[axis].max(1));
        }
    }
    let whole = positions.axes.iter().zip(schema.shape()).all(|(axis, extent)| is_whole(axis, *extent));
    let max_shape: Vec<Option<u64>> = positions
        .axes
        .iter()
        .enumerate()
        .filter(|(_, axis)| axis.keep)
        .map(|(index, axis)| match schema.max_shape[index] {
            // An axis with a fixed length keeps it when it is cut.
            Some(limit) if limit == schema.shape()[index] => Some(axis.count),
            limit => limit,
        })
        .collect();
    // Some formats store a chunk that is larger than the array. HDF5 rejects such chunks if the axis cannot grow.
    let keeps_chunk = |axis: usize| whole && same_format || max_shape[axis].is_none();
    let chunk_shape: Vec<u64> = chunk_shape
        .iter()
        .zip(&shape)
        .enumerate()
        .map(
            |(axis, (chunk, extent))| if keeps_chunk(axis) { *chunk } else { (*chunk).min((*extent).max(1)) },
        )
        .collect();
    let mut spec = ArraySpec::new(schema.dtype.clone(), Grid::new(&shape, &chunk_shape)?);
    spec.max_shape = max_shape;
    spec.labels = positions
        .axes
        .iter()
        .zip(&schema.labels)
        .filter(|(axis, _)| axis.keep)
        .map(|(axis, labels)| cut_labels(labels, axis))
        .collect();
    spec.dimensions = schema
        .dimensions
        .iter()
        .enumerate()
        .filter(|(index, _)| kept(*index))
        .map(|(_, name)| name.clone())
        .collect();
    for axis in options.unlimited.iter().filter(|_| !schema.stored.no_space) {
        unlimited_axes(&spec.dimensions, axis).for_each(|axis| spec.max_shape[axis] = None);
    }
    // If the storage changes, the target chooses the layout.
    spec.stored.clone_from(&schema.stored);
    spec.stored.no_space &= whole;
    if positions.axes.iter().any(|axis| axis.step < 0) {
        spec.stored.label = spec.stored.label.map(LabelOrder::reversed);
    }
    let is_virtual = matches!(spec.stored.layout, Some(StoredLayout::Virtual(_)));
    if !whole || options.append || options.shapes_arrays() && !is_virtual {
        spec.stored.layout = None;
    }
    if options.shapes_arrays() {
        spec.stored.document = None;
    }
    if !whole || !same_format || options.append || options.shapes_arrays() {
        spec.stored.extent = None;
    }
    spec.nullable = schema.nullable;
    spec.fill = schema.fill.clone();
    spec.attributes = schema.attributes.clone();
    Ok(spec)
}

/// The axes of an array that an entry of `--unlimited` refers to: by number, or else by dimension name.
pub(super) fn unlimited_axes<'a>(
    dimensions: &'a [Option<String>],
    wanted: &'a str,
) -> impl Iterator<Item = usize> + 'a {
    let number = wanted.parse::<usize>().ok();
    let numbered = number.is_some_and(|number| number < dimensions.len());
    (0..dimensions.len()).filter(move |axis| match number {
        Some(number) if numbered => *axis == number,
        _ => dimensions[*axis].as_deref() == Some(wanted),
    })
}

/// A note for an array that the requested chunks do not apply to, because its rank differs.
pub(super) fn other_rank(spec: &ArraySpec, options: &ConvertOptions) -> Option<String> {
    let rank = spec.grid.rank();
    let shards = options.shard_shape.as_ref().filter(|shape| shape.len() > 1);
    let wanted = [("chunks", options.chunk_shape.as_ref()), ("shards", shards)];
    wanted.into_iter().filter(|_| rank > 1).find_map(|(what, shape)| {
        let shape = shape.filter(|shape| shape.len() != rank)?;
        let text = shape.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
        Some(format!("{what} of {text} do not apply to its {rank} dimensions"))
    })
}

/// The maximum length of a dimension that no array describes.
pub(super) fn dimension_limit(
    path: &str,
    length: u64,
    limit: Option<u64>,
    own: u64,
    options: &ConvertOptions,
) -> Option<u64> {
    let name = path.rsplit('/').next().unwrap_or(path);
    match limit {
        _ if options.unlimited.iter().any(|wanted| wanted == name) => None,
        Some(limit) if limit == own => Some(length),
        limit => limit,
    }
}

/// Drops dimension names that a reader generated: this prefix and the axis number. A dimension with a coordinate
/// needs its name.
pub(super) fn drop_generated_names(spec: &mut ArraySpec, prefix: &str) {
    for (axis, name) in spec.dimensions.iter_mut().enumerate() {
        if !matches!(spec.labels.get(axis), Some(Labels::Node(_))) {
            name.take_if(|name| *name == format!("{prefix}{axis}"));
        }
    }
}

/// The attribute in a form that the target has, and a description of the change; `None` if nothing changes.
pub(crate) fn fitted_attribute(
    attribute: &Attribute,
    format: Format,
    variant: Option<Variant>,
    verbatim: bool,
) -> Option<(Attribute, String)> {
    if !format.info().capabilities.attributes {
        return None;
    }
    if super::forms::needs_netcdf4_types(variant, verbatim) {
        return super::netcdf::adapted_attribute(attribute);
    }
    let refused = || format.driver().refused_attribute(attribute).is_some();
    if let Attribute::Json(document) = attribute
        && (document.is_object() || document.is_null() || document.is_array())
        && refused()
    {
        let text = Attribute::from(document.to_string().as_str());
        return Some((text, "is stored as the text of its JSON".to_owned()));
    }
    let read = attribute.from_latin_1().filter(|_| format.driver().attributes_are_utf8())?;
    Some((read, "is not UTF-8; it is read as Latin-1".to_owned()))
}

/// Names the attributes of a node that a format without attributes leaves out. Marks of forms are no content.
pub(super) fn report_attributes(
    path: &str,
    attributes: &Attributes,
    format: Format,
    report: &mut ConvertReport,
) {
    let names = attributes.iter().map(|(name, _)| name).filter(|name| !name.starts_with("hyperslab_"));
    let names: Vec<&str> = names.collect();
    if !names.is_empty() {
        report.change(path, format!("{} has no attributes; left out: {}", format.name(), names.join(", ")));
    }
}

/// Reports that a format without attributes, which cannot mark a form, stores the values of an enumeration without their names.
pub(super) fn report_enumeration(path: &str, dtype: &DType, format: Format, report: &mut ConvertReport) {
    if matches!(dtype, DType::Enum(_)) && !format.info().capabilities.attributes {
        report.drop(
            path,
            format!("the names of the values are left out: {} has no enumerations", format.name()),
        );
    }
}

/// The attributes of a node without any format's bookkeeping, such as that of HDF5's dimension scales.
pub(crate) fn portable_attributes(attributes: &Attributes, same_format: bool) -> Vec<(&str, &Attribute)> {
    let bookkeeping: HashSet<&str> = Format::all()
        .into_iter()
        .flat_map(|format| format.driver().bookkeeping(attributes, !same_format))
        .collect();
    attributes.iter().filter(|(name, _)| !bookkeeping.contains(name)).collect()
}

/// The chunk size for `auto`: large enough to compress and request well, small enough to have many in memory at once.
pub const AUTO_CHUNK_BYTES: u64 = 4 << 20;

/// Chunks of about a mebibyte, as close to cubes as the shape allows, for slices in any direction.
pub fn default_chunk_shape(shape: &[u64], item: u64) -> Vec<u64> {
    chunk_shape_of(shape, item, 1 << 20)
}

/// Chunks of at most this many bytes.
fn chunk_shape_of(shape: &[u64], item: u64, bytes: u64) -> Vec<u64> {
    let mut chunk: Vec<u64> = shape.iter().map(|extent| (*extent).max(1)).collect();
    let most = (bytes / item.max(1)).max(1);
    while product(&chunk).is_none_or(|cells| cells > most) {
        let Some(longest) = chunk.iter_mut().max() else { break };
        if *longest == 1 {
            break;
        }
        *longest = longest.div_ceil(2);
    }
    chunk
}

/// How to choose the filters of an array.
#[derive(Debug, Clone, Copy)]
pub(super) struct FilterChoice<'a> {
    /// The requested filters.
    wanted: Option<&'a [Filter]>,
    /// The filters that are kept. Empty if all of the source are.
    standard: &'static [&'static str],
    /// Filters that every library of the target's format reads. A filter that cannot be kept is replaced by one of these.
    common: &'static [&'static str],
    /// Whether the source has the target's format.
    same_format: bool,
}

impl<'a> FilterChoice<'a> {
    pub(super) fn new(options: &'a ConvertOptions, format: Format, same_format: bool) -> Self {
        let common = format.info().standard_filters;
        let standard = if same_format { &[] } else { common };
        Self { wanted: options.filters.as_deref(), standard, common, same_format }
    }

    fn is_standard(&self, filter: &Filter) -> bool {
        self.standard.is_empty() || self.standard.contains(&filter.name.as_str())
    }
}

/// Creates the array with the requested filters, or else with those of the source that the target supports. Reports
/// the others.
pub(super) fn create(
    sink: &mut dyn Sink,
    path: &str,
    spec: &mut ArraySpec,
    source: &[Filter],
    filter_choice: FilterChoice<'_>,
    changed: &mut Vec<(String, String)>,
) -> Result<Arc<dyn ArraySink>> {
    if let Some(wanted) = filter_choice.wanted {
        wanted.iter().try_for_each(Filter::check_level)?;
        spec.filters = wanted.to_vec();
        return sink.array(path, spec);
    }
    let source = portable_filters(source, filter_choice);
    let is_wide = spec.dtype.size().is_some_and(|size| size > 1);
    let mut refused = None;
    for filters in candidates(&source, filter_choice, is_wide) {
        spec.filters = filters;
        match sink.array(path, spec) {
            Ok(array) => {
                changed.extend(
                    lost_filters(&source, &spec.filters, filter_choice).map(|lost| (path.to_owned(), lost)),
                );
                return Ok(array);
            }
            Err(why @ (Error::Unsupported { .. } | Error::Invalid(_) | Error::Corrupt(_))) => {
                refused = Some(why);
            }
            Err(why) => return Err(why),
        }
    }
    Err(refused.unwrap_or_else(|| Error::invalid(format!("{path}: no pipeline was tried"))))
}

/// Describes the source's filters that the target lacks, and their replacements.
fn lost_filters(source: &[Filter], own: &[Filter], filter_choice: FilterChoice<'_>) -> Option<String> {
    let names = |filters: &[&Filter]| {
        let names: Vec<&str> = filters.iter().map(|filter| filter.name.as_str()).collect();
        match &names[..] {
            [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
            names => names.concat(),
        }
    };
    let is_own = |filter: &&Filter| own.iter().any(|other| other.name == filter.name);
    let lost: Vec<&Filter> = source.iter().filter(|filter| !is_own(filter)).collect();
    let new: Vec<&Filter> =
        own.iter().filter(|filter| !source.iter().any(|other| other.name == filter.name)).collect();
    let (last, words) = (lost.last()?, names(&lost));
    let word = if lost.len() == 1 { "filter" } else { "filters" };
    Some(if own.is_empty() {
        format!("{word} {words} not carried over: stored without")
    } else if !filter_choice.is_standard(last) && !new.is_empty() {
        format!("{word} {words} replaced by {}, which every library of the format reads", names(&new))
    } else {
        format!("{word} {words} not carried over: {} instead", names(&own.iter().collect::<Vec<_>>()))
    })
}

/// Filters that add a checksum.
const CHECKSUMS: [&str; 7] =
    ["fletcher32", "crc32c", "crc32", "adler32", "jenkins_lookup3", "checksum_md5", "checksum_sha256"];

/// The source's filters under the names that other formats use, without those that only change the cell layout. In
/// another format, checksums come last: a shuffle expects whole elements, which a checksum before it would not leave.
fn portable_filters(source: &[Filter], filter_choice: FilterChoice<'_>) -> Vec<Filter> {
    let laid_out = ["transpose", "sharding_indexed", "noop"];
    let mut portable_filters: Vec<Filter> = source
        .iter()
        .filter(|filter| !laid_out.contains(&filter.name.as_str()))
        .map(|filter| {
            let name = match filter.name.as_str() {
                "byteshuffle" => "shuffle",
                "deflate" => "gzip",
                "bzip2" => "bz2",
                other => other,
            };
            Filter { name: name.to_owned(), parameters: filter.parameters.clone() }
        })
        .collect();
    if !filter_choice.same_format {
        portable_filters.sort_by_key(|filter| CHECKSUMS.contains(&filter.name.as_str()));
    }
    portable_filters
}

/// The pipelines to try, the closest to the source's first: all of it; its shuffle and compressor; another compressor
/// instead (gzip if the target's libraries have no better one in common, else Zstandard); no filters. `is_wide` means
/// that elements have several bytes to shuffle.
fn candidates(source: &[Filter], filter_choice: FilterChoice<'_>, is_wide: bool) -> Vec<Vec<Filter>> {
    let compressors = ["gzip", "zlib", "zstd", "lz4", "bz2", "blosc", "blosc2", "lzf", "szip", "bitshuffle"];
    let mut shuffle = source.iter().find(|filter| filter.name == "shuffle").cloned();
    let compressor = source.iter().find(|filter| compressors.contains(&filter.name.as_str())).cloned();
    let zstd = Filter::new("zstd").with("level", 3);
    let is_common = filter_choice.common.is_empty() || filter_choice.common.contains(&"zstd");
    let other = if is_common { zstd } else { Filter::new("gzip").with("level", 4) };
    // gzip benefits most from a shuffle; some of the others have one built in.
    if compressor.as_ref().is_some_and(|own| !filter_choice.is_standard(own)) && is_wide {
        shuffle.get_or_insert_with(|| Filter::new("shuffle"));
    }
    let other = compressor.as_ref().map(|_| other);
    let mut pipelines = vec![source.to_vec()];
    for compressor in [compressor, other] {
        pipelines.push(shuffle.iter().chain(&compressor).cloned().collect());
        pipelines.push(compressor.into_iter().collect());
    }
    pipelines.retain(|pipeline| pipeline.iter().all(|filter| filter_choice.is_standard(filter)));
    pipelines.push(Vec::new());
    pipelines.dedup();
    pipelines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_chunks_are_about_a_mebibyte() {
        assert_eq!(default_chunk_shape(&[1024, 1024, 1024], 4), [64, 64, 64]);
        assert_eq!(default_chunk_shape(&[10, 3], 8), [10, 3]);
        assert_eq!(default_chunk_shape(&[], 8), [0_u64; 0]);
        assert_eq!(chunk_shape_of(&[1024, 1024], 4, 16 << 10), [64, 64]);
    }

    #[test]
    fn the_closest_pipeline_comes_first() {
        let source =
            [Filter::new("byteshuffle"), Filter::new("bzip2").with("level", 9), Filter::new("checksum_md5")];
        let names = |source: &[Filter], filter_choice: FilterChoice<'_>| -> Vec<Vec<String>> {
            candidates(&portable_filters(source, filter_choice), filter_choice, true)
                .iter()
                .map(|filters| filters.iter().map(|filter| filter.name.clone()).collect())
                .collect()
        };
        let any = FilterChoice { wanted: None, standard: &[], common: &[], same_format: true };
        let expected: &[&[&str]] = &[
            &["shuffle", "bz2", "checksum_md5"],
            &["shuffle", "bz2"],
            &["bz2"],
            &["shuffle", "zstd"],
            &["zstd"],
            &[],
        ];
        assert_eq!(names(&source, any), expected);
        assert_eq!(names(&[], any), [Vec::<String>::new()]);
        // Checksums come last in another format, and filters that only some libraries have are replaced.
        let common = &["gzip", "shuffle", "fletcher32"];
        let other = FilterChoice { standard: common, common, same_format: false, ..any };
        // Within the format, a filter that does not fit the new chunks is replaced by a common one too.
        let szip = [Filter::new("szip")];
        assert_eq!(names(&szip, FilterChoice { common, ..any }), [vec!["szip"], vec!["gzip"], vec![]]);
        let source = ["fletcher32", "shuffle", "gzip"].map(Filter::new);
        assert_eq!(names(&source, other)[0], ["shuffle", "gzip", "fletcher32"]);
        assert_eq!(names(&source, any)[0], ["fletcher32", "shuffle", "gzip"]);
        let zstd = [Filter::new("zstd")];
        assert_eq!(names(&zstd, other), [vec!["shuffle", "gzip"], vec!["gzip"], vec![]]);
        let describe_change = |source: &[Filter], own: &[&str], filter_choice| {
            lost_filters(source, &own.iter().copied().map(Filter::new).collect::<Vec<_>>(), filter_choice)
        };
        let words = "filter zstd replaced by shuffle and gzip, which every library of the format reads";
        assert_eq!(describe_change(&zstd, &["shuffle", "gzip"], other).as_deref(), Some(words));
        let words = "filters fletcher32 and shuffle not carried over: gzip instead";
        assert_eq!(describe_change(&source, &["gzip"], any).as_deref(), Some(words));
        assert_eq!(describe_change(&source, &["fletcher32", "shuffle", "gzip"], any), None);
    }
}
