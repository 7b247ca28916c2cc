//! Any format to any other: what the source's traits answer is what the target's sink is told.

mod blocks;
mod characters;
mod chosen;
mod copy;
mod geometry;
mod netcdf;
mod nodes;
mod provenance;
mod relocate;
mod rows;
mod spec;
mod stored;
mod subset;
#[cfg(feature = "remote")]
mod upload;

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::Ordering;

use hyperslab_core::storage::StageOptions;
use hyperslab_core::{Attribute, Attributes, Error, Filter, Node, Result, Selection};

pub(crate) use blocks::{block_grid, cut};
pub(crate) use copy::{at_once, encode_and_write};
pub use geometry::GeometryOptions;
pub use hyperslab_core::Progress;
pub use provenance::PROVENANCE;
pub use rows::{convert_to_rows, is_file_of_rows};
pub(crate) use spec::portable_attributes;
pub use spec::{AUTO_CHUNK_BYTES, default_chunk_shape};

use crate::formats::check_replaceable;
use crate::{CreateOptions, Format, OpenStore, Variant, create};
use copy::Copy;
use nodes::{Item, Items};
use stored::Stored;
use subset::Subset;

/// How to convert.
#[derive(Debug, Clone)]
pub struct ConvertOptions {
    /// Only this node and what is below it.
    pub node: Option<String>,
    /// Only this part: every array is cut along the dimensions that the selection names, by the same positions, and arrays
    /// without them are copied whole. Together with a [node](Self::node), what describes that node comes along: the
    /// coordinates of its dimensions, and what the CF attributes `coordinates`, `bounds`, `grid_mapping`,
    /// `ancillary_variables`, `cell_measures` and `formula_terms` name.
    ///
    /// A selection by position needs one array, or arrays of the same dimensions. Arrays that describe others do not count.
    pub selection: Selection,
    /// The target's chunks; the source's own, or a default, when left out.
    pub chunk_shape: Option<Vec<u64>>,
    /// The target's chunks along dimensions, by name; `u64::MAX` for the whole dimension. They come before
    /// [`chunk_shape`](Self::chunk_shape); other dimensions are as they would be.
    pub chunk_extents: Vec<(String, u64)>,
    /// Chunks of at most this many bytes instead.
    pub chunk_bytes: Option<u64>,
    /// Axes that may grow without end, by number or name, in formats that know that.
    pub unlimited: Vec<String>,
    /// Gather chunks in shards of this shape, in formats that have them.
    pub shard_shape: Option<Vec<u64>>,
    /// The target's pipeline; when left out the source's own, as far as the target has its filters.
    pub filters: Option<Vec<Filter>>,
    /// Replace a target that exists.
    pub replace: bool,
    /// Make a new target durable before the conversion ends. What replaces or changes a target always is.
    pub sync: bool,
    /// Add to a target that exists, in formats that can.
    pub append: bool,
    /// Refuse what the target cannot hold, instead of noting it.
    pub strict: bool,
    /// The variant of the target's format; the source's own where it has the same format.
    pub variant: Option<Variant>,
    /// Copy the values of virtual arrays, instead of keeping them virtual where the target can.
    pub materialise: bool,
    /// Note in an attribute of the root where the content came from.
    pub provenance: bool,
    /// Nodes or dimensions with new names: old and new. A coordinate takes its dimension along.
    pub rename: Vec<(String, String)>,
    /// Nodes to leave out, with everything below them.
    pub drop: Vec<String>,
    /// Only these nodes, with everything below them and what describes them; all when empty.
    pub keep: Vec<String>,
    /// Copy a format's own bookkeeping as it is where a whole store is converted to its own format. Otherwise it is made
    /// anew.
    pub keep_bookkeeping: bool,
    /// Memory for elements on their way.
    pub memory: u64,
    /// How geometry is written.
    pub geometry: GeometryOptions,
    /// How a target on remote storage is reached.
    #[cfg(feature = "remote")]
    pub remote: hyperslab_remote::RemoteOptions,
}

impl Default for ConvertOptions {
    fn default() -> Self {
        Self {
            node: None,
            selection: Selection::all(),
            chunk_shape: None,
            chunk_extents: Vec::new(),
            chunk_bytes: None,
            unlimited: Vec::new(),
            shard_shape: None,
            filters: None,
            replace: false,
            sync: false,
            append: false,
            strict: false,
            variant: None,
            materialise: false,
            provenance: false,
            rename: Vec::new(),
            drop: Vec::new(),
            keep: Vec::new(),
            keep_bookkeeping: true,
            memory: 256 << 20,
            geometry: GeometryOptions::default(),
            #[cfg(feature = "remote")]
            remote: hyperslab_remote::RemoteOptions::default(),
        }
    }
}

impl ConvertOptions {
    /// How a single file is put in its place.
    fn stage(&self) -> StageOptions {
        StageOptions::default().with_replace(self.replace).with_sync(self.sync)
    }

    /// Do they ask for anything that only arrays have?
    fn shapes_arrays(&self) -> bool {
        self.chunk_shape.is_some()
            || !self.chunk_extents.is_empty()
            || self.chunk_bytes.is_some()
            || self.shard_shape.is_some()
            || self.filters.is_some()
            || !self.unlimited.is_empty()
    }
}

/// What became of everything in the source.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct ConvertReport {
    /// Arrays that were written.
    pub arrays: u64,
    /// Rows of a table, or vertices of a geometry.
    pub rows: u64,
    /// Bytes of their elements.
    pub bytes: u64,
    /// Chunks whose stored bytes were taken as they are.
    pub copied_chunks: u64,
    /// What the target cannot hold, and what was done about it.
    pub losses: Vec<Loss>,
}

/// Something that a target could not hold as it was.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Loss {
    /// The node.
    pub path: String,
    /// What was lost or changed, and why.
    pub what: String,
    /// Is content missing from the target? Otherwise it is there in another form.
    pub dropped: bool,
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path, self.what)
    }
}

impl ConvertReport {
    /// Content that is not in the target.
    pub fn dropped(&self) -> impl Iterator<Item = &Loss> {
        self.losses.iter().filter(|loss| loss.dropped)
    }

    /// The losses as lines of text.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        self.losses.iter().map(Loss::to_string).collect()
    }

    /// Notes of what came before the conversion.
    pub(crate) fn add_notes(&mut self, notes: Vec<(String, String)>) {
        for (path, note) in notes {
            self.change(&path, note);
        }
    }

    fn drop(&mut self, path: &str, what: impl Into<String>) {
        self.losses.push(Loss { path: path.to_owned(), what: what.into(), dropped: true });
    }

    fn change(&mut self, path: &str, what: impl Into<String>) {
        self.losses.push(Loss { path: path.to_owned(), what: what.into(), dropped: false });
    }
}

/// Converts a store. The target appears whole or not at all.
///
/// # Errors
///
/// Whatever reading the source and writing the target say; [`Invalid`](Error::Invalid) when stopped.
pub fn convert(
    source: &OpenStore,
    target: &Path,
    format: Format,
    options: &ConvertOptions,
    progress: &Progress,
) -> Result<ConvertReport> {
    #[cfg(feature = "remote")]
    if let Some(url) = crate::location::remote_url(target) {
        return upload::convert_to(source, url, format, options, progress);
    }
    if same_file(source.path(), target) {
        return Err(Error::invalid(format!("{} is the source itself, or holds it", target.display())));
    }
    convert_into(source, target, format, options, progress)
}

/// As [`convert`], also where the target is the source itself: it is replaced when everything is written.
pub(crate) fn convert_into(
    source: &OpenStore,
    target: &Path,
    format: Format,
    options: &ConvertOptions,
    progress: &Progress,
) -> Result<ConvertReport> {
    if let Some((view, options)) = chosen::view(source, options)? {
        return convert_into(&view, target, format, &options, progress);
    }
    let same_format = source.format() == format.name();
    if format.writes_geometry() {
        if options.replace {
            check_replaceable(target, format.info().created_form())?;
        }
        let only: Vec<String> = options.node.iter().cloned().collect();
        let nodes: Vec<_> = nodes::by_path(source, &only)?.into_nodes();
        return geometry::convert(source, &nodes, (target, format), options, progress);
    }
    spec::check_filters(format, options)?;
    let keeps_links = same_format && format.info().capabilities.links && !options.append;
    let several = format.info().capabilities.several_arrays;
    let subset = Subset::new(source, options.node.as_deref(), &options.selection, several)?;
    let by_identity = keeps_links.then(|| nodes::by_identity(source, &subset.only)).transpose()?;
    let Items { items: nodes, paths } = match by_identity.flatten() {
        Some(items) => items,
        None => nodes::by_path(source, &subset.only)?,
    };
    let own_variant = source.inner().variant().filter(|_| same_format);
    // The same store once more: the format's own bookkeeping is kept as it is.
    let verbatim = !paths.is_empty()
        && options.keep_bookkeeping
        && options.node.is_none()
        && options.selection == Selection::all()
        && options
            .variant
            .is_none_or(|variant| !variant.info().netcdf_types || Some(variant.name()) == own_variant);
    let holds_values =
        |item: &Item| matches!(item.node(), Some(Node::Array(array)) if !array.schema().is_dimension);
    let arrays = nodes.iter().filter(|(_, item)| holds_values(item)).count();
    let mut report = ConvertReport::default();
    let preamble = if keeps_links { source.inner().preamble() } else { Ok(None) };
    let preamble = preamble.unwrap_or_else(|error| {
        report.drop("/", format!("the bytes before the content are left out: {error}"));
        None
    });
    let create_options = CreateOptions {
        replace: options.replace,
        sync: options.sync,
        append: options.append,
        only_array: true,
        source: Some(source.format().to_owned()),
        shard_shape: options.shard_shape.clone(),
        variant: options.variant.or_else(|| format.info().variant(own_variant?)),
        verbatim,
        preamble,
    };
    // Names that the source's reader made up stay in its format.
    let generated_dimension =
        source.driver().filter(|_| !same_format).and_then(|format| format.info().generated_dimension);
    let mut sink = create(target, format, &create_options)?;
    let (mut copies, mut filters, mut refused) = (Vec::new(), Vec::new(), None);
    let stored = Stored {
        source,
        target,
        paths: &paths,
        verbatim,
        materialise: options.materialise || options.shapes_arrays(),
    };
    let attributes_of = |path: &str, attributes: &Attributes, report: &mut ConvertReport| {
        let portable = spec::portable_attributes(attributes, same_format);
        let portable: HashSet<&str> = portable.into_iter().map(|(name, _)| name).collect();
        let mut kept = attributes.filtered(|name, value| {
            let refused = match value {
                _ if !verbatim && !portable.contains(name) => return false,
                Attribute::Unreadable(reason) => Some(reason.to_string()),
                value => format.driver().refused_attribute(value).map(|reason| reason.to_string()),
            };
            if let Some(reason) = &refused {
                report.drop(path, format!("attribute {name:?} is left out: {reason}"));
            }
            refused.is_none()
        });
        stored.attributes(path, &mut kept, report);
        if options.provenance { provenance::noted(&kept, path, source, format) } else { kept }
    };
    // All nodes are declared before the first chunk is written: formats lay out their directories then.
    for (path, item) in &nodes {
        let node = match item {
            Item::Node(node) => node,
            Item::Link(link) => {
                if let Err(why) = sink.link(path, &stored.link(path, link, &mut report)) {
                    if !why.is_unsupported() {
                        return Err(why);
                    }
                    report.drop(path, format!("not converted: {why}"));
                }
                continue;
            }
        };
        match node {
            Node::Group(attributes) => {
                let attributes = attributes_of(path, attributes, &mut report);
                if same_format {
                    sink.group_as(path, &attributes, &source.inner().stored_group(path)?)?;
                } else {
                    sink.group(path, &attributes)?;
                }
            }
            Node::Array(array) if array.schema().is_dimension && !verbatim => {
                let schema = array.schema();
                if let (&[own], [limit]) = (schema.shape(), &schema.max_shape[..])
                    && let [axis] = subset.positions(path, schema)?.axes[..]
                    && axis.keep
                {
                    let limit = spec::dimension_limit(path, axis.count, *limit, own, options);
                    sink.dimension(path, axis.count, limit)?;
                }
            }
            Node::Array(array) => {
                let characters = format.info().character_text;
                let (array, change) = match create_options.variant {
                    _ if characters => netcdf::adapted(array, true)?,
                    Some(variant) if variant.info().netcdf_types && !verbatim => {
                        netcdf::adapted(array, false)?
                    }
                    _ => (std::sync::Arc::clone(array), None),
                };
                change.into_iter().for_each(|change| report.change(path, change));
                let reader = source.reader(array);
                let positions = subset.positions(path, reader.schema())?;
                let mut copy = Copy::new(reader, positions, options, same_format)?;
                subset.name_scalars(
                    path,
                    copy.reader.schema(),
                    &copy.positions,
                    &mut copy.spec.attributes,
                )?;
                if let Some(prefix) = generated_dimension {
                    spec::drop_generated_names(&mut copy.spec, prefix);
                }
                copy.spec.attributes = attributes_of(path, &copy.spec.attributes, &mut report);
                stored.array(path, &mut copy.spec, &mut report);
                if !keeps_links && copy.reader.schema().stored.no_space {
                    report.change(path, "it has no dataspace: an array of no elements is written");
                }
                let (own, wanted) = (&copy.reader.schema().filters, options.filters.as_deref());
                let mut created = spec::create(&mut *sink, path, &mut copy.spec, own, wanted, &mut filters);
                if stored.is_virtual(&copy.spec) && created.as_ref().is_err_and(Error::is_unsupported) {
                    stored.materialise(path, &mut copy.spec, &mut report);
                    created = spec::create(&mut *sink, path, &mut copy.spec, own, wanted, &mut filters);
                }
                match created {
                    // Its elements are those of other arrays.
                    Ok(_) if stored.is_virtual(&copy.spec) => report.arrays += 1,
                    Ok(array_sink) => {
                        progress.total.fetch_add(copy.bytes, Ordering::Relaxed);
                        copies.push((copy, array_sink));
                    }
                    // What the target cannot hold is told, and does not cost the others.
                    Err(why) if why.is_unsupported() && arrays > 1 => {
                        report.drop(path, format!("not converted: {why}"));
                        refused.get_or_insert(why);
                    }
                    Err(why) => return Err(why),
                }
            }
            Node::Type(dtype, attributes) if keeps_links => {
                let attributes = attributes_of(path, attributes, &mut report);
                let Some(named) = source.inner().stored_type(path)? else {
                    report.drop(
                        path,
                        "named types have no place in the target; arrays keep their element types",
                    );
                    continue;
                };
                sink.named_type(path, dtype, &attributes, &named)?;
            }
            other => report.drop(
                path,
                format!("not converted: it is {}, which the output format does not hold", other.kind().one()),
            ),
        }
    }
    spec::check_wanted(options, copies.iter().map(|(copy, _)| &copy.spec))?;
    for (path, change) in sink.changes() {
        report.change(&path, change);
    }
    if let (true, Some(loss)) = (options.strict, report.losses.first()) {
        return Err(Error::invalid(format!("{loss}; nothing was written")));
    }
    if copies.is_empty() && report.arrays == 0 {
        // A target without values is no conversion of a source that has some.
        if let Some(why) = refused {
            return Err(why);
        }
        let values = nodes.iter().filter_map(|(path, item)| Some((path, item.node()?)));
        let mut values = values.filter(|(_, node)| matches!(node, Node::Table(_) | Node::Geometry(_)));
        if let Some((path, node)) = values.next() {
            let what = format!("{path} is {}, which {} does not hold", node.kind().one(), format.name());
            return Err(Error::unsupported(target.display().to_string(), what));
        }
    }
    // How bytes are packed is not content: it is told, and never refused.
    for (path, what) in filters {
        report.change(&path, what);
    }
    for (copy, array_sink) in copies {
        report.copied_chunks += copy.run(&*array_sink, options, progress)?;
        report.arrays += 1;
        report.bytes += copy.bytes;
    }
    for (path, what) in sink.finish()? {
        report.drop(&path, what);
    }
    if let (true, Some(loss)) = (options.strict, report.dropped().next()) {
        return Err(Error::invalid(format!("{loss}; nothing was written")));
    }
    sink.commit()?;
    Ok(report)
}

/// All nodes of a store, parents first, arrays and their own fields as one.
pub(crate) fn nodes_by_path(source: &OpenStore) -> Result<Vec<(String, Node)>> {
    Ok(nodes::by_path(source, &[])?.into_nodes())
}

/// Is the target the source, or a folder above it? To replace it would remove the source.
pub(crate) fn same_file(source: &Path, target: &Path) -> bool {
    matches!((source.canonicalize(), target.canonicalize()), (Ok(source), Ok(target)) if source.starts_with(&target))
}
