//! Converts any format to any other: reads the source through the engine's traits and writes to the target's sink.

mod blocks;
mod characters;
mod check;
mod chosen;
mod coerce;
mod copy;
mod forms;
mod geometry;
mod labels;
mod multiscale;
mod netcdf;
mod nodes;
mod provenance;
mod relocate;
mod rows;
mod spec;
mod stored;
mod subset;
pub(crate) mod table;
mod tables;
mod target;

use std::path::Path;
use std::sync::atomic::Ordering;

use hyperslab_core::storage::StageOptions;
use hyperslab_core::{Attributes, DType, Error, Fill, Filter, Node, Result, Selection, Sink, normal_path};

pub(crate) use blocks::{block_grid, cut};
pub(crate) use chosen::restricted;
pub(crate) use copy::{at_once, encode_and_write};
pub use geometry::GeometryOptions;
pub(crate) use geometry::append as append_geometry;
pub use hyperslab_core::Progress;
pub use multiscale::{Downsample, convert_multiscale};
pub(crate) use netcdf::netcdf_form_of;
pub use provenance::PROVENANCE;
pub use rows::{convert_to_rows, is_file_of_rows};
pub use spec::{AUTO_CHUNK_BYTES, default_chunk_shape};
pub(crate) use spec::{fitted_attribute, portable_attributes};
pub use table::TableOptions;

use crate::formats::check_replaceable;
use crate::forms::NativeSupport;
use crate::{Format, OpenStore, create};
use copy::ArrayCopy;
use forms::PlannedNode;
use hyperslab_core::{CreateOptions, Variant};
use labels::PlacedLabels;
use nodes::{Item, Items};
use stored::Stored;
use subset::Subset;
use tables::{Declaration, TableCopy};
pub(crate) use target::TargetFormat;

/// Options for a conversion.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ConvertOptions {
    /// Convert only this node and everything below it.
    pub node: Option<String>,
    /// Convert only this part: every array is cut along the dimensions that the selection names, at the same
    /// positions, and arrays without them are copied as a whole. Together with a [node](Self::node), the arrays that
    /// describe it are included: the coordinates of its dimensions, and those named by the CF attributes
    /// `coordinates`, `bounds`, `grid_mapping`, `ancillary_variables`, `cell_measures` and `formula_terms`.
    ///
    /// A selection by position needs one array, or arrays with the same dimensions. Arrays that describe others do
    /// not count.
    pub selection: Selection,
    /// The target's chunk shape. By default that of the source, or one chosen by the engine.
    pub chunk_shape: Option<Vec<u64>>,
    /// The target's chunk extents by dimension name; `u64::MAX` means the whole dimension. They take precedence over
    /// [`chunk_shape`](Self::chunk_shape); other dimensions are not affected.
    pub chunk_extents: Vec<(String, u64)>,
    /// Choose chunks of at most this many bytes instead.
    pub chunk_bytes: Option<u64>,
    /// Axes to make unlimited, by number or name, in formats that support it.
    pub unlimited: Vec<String>,
    /// Gather chunks in shards of this shape, in formats that support it.
    pub shard_shape: Option<Vec<u64>>,
    /// The target's filters. By default those of the source that the target supports.
    pub filters: Option<Vec<Filter>>,
    /// Replace an existing target.
    pub replace: bool,
    /// Make a new target durable before the conversion ends. Replacing or changing a target always does.
    pub sync: bool,
    /// Add to an existing target, in formats that support it.
    pub append: bool,
    /// Fail if the target cannot hold everything, instead of reporting losses.
    pub strict: bool,
    /// The variant of the target's format. By default that of the source if it has the same format.
    pub variant: Option<Variant>,
    /// Divide the target into pages of this many bytes, in formats with pages (HDF5); zero for none. By default, the
    /// page size of a source of the same format is kept.
    pub page_size: Option<u64>,
    /// Bytes before the content of the target, in formats that allow them (HDF5's user block); empty for none. By
    /// default, those of a source of the same format are kept.
    pub preamble: Option<bytes::Bytes>,
    /// Write stored values to files of rows that otherwise get decoded ones
    /// ([`takes_decoded`](crate::rows::takes_decoded)).
    pub raw: bool,
    /// Copy the values of virtual arrays, instead of keeping them virtual if the target can.
    pub materialise: bool,
    /// Record the source in an attribute of the root.
    pub provenance: bool,
    /// Nodes or dimensions to rename: old and new name. Renaming a coordinate also renames its dimension. If the only or
    /// chosen node is a table or geometry, these and the following names are those of its columns or vertex attributes.
    pub rename: Vec<(String, String)>,
    /// Nodes to leave out, with everything below them.
    pub drop: Vec<String>,
    /// Convert only these nodes, with everything below them and the arrays that describe them. Empty for all. The
    /// dimensions of a table are kept with its columns.
    pub keep: Vec<String>,
    /// Copy a format's bookkeeping attributes unchanged when a whole store is converted to its own format. Otherwise
    /// they are regenerated.
    pub keep_bookkeeping: bool,
    /// Memory limit for elements being copied.
    pub memory: u64,
    /// Options for writing geometry.
    pub geometry: GeometryOptions,
    /// Options for writing tables.
    pub table: TableOptions,
    /// The target replaces the source, with changes. Attributes and types are copied as they are stored.
    pub(crate) rewrite: bool,
    /// Check everything, and write nothing.
    pub(crate) dry_run: bool,
    /// Options for a target on remote storage.
    #[cfg(feature = "remote")]
    pub remote: hyperslab_remote::RemoteOptions,
}

hyperslab_core::option_setters! { ConvertOptions {
    with_node = node: into Option<String>,
    with_selection = selection: Selection,
    with_chunk_shape = chunk_shape: into Option<Vec<u64>>,
    with_chunk_extents = chunk_extents: Vec<(String, u64)>,
    with_chunk_bytes = chunk_bytes: into Option<u64>,
    with_unlimited = unlimited: Vec<String>,
    with_shard_shape = shard_shape: into Option<Vec<u64>>,
    with_filters = filters: into Option<Vec<Filter>>,
    with_replace = replace: bool,
    with_sync = sync: bool,
    with_append = append: bool,
    with_strict = strict: bool,
    with_variant = variant: into Option<Variant>,
    with_raw = raw: bool,
    with_materialise = materialise: bool,
    with_provenance = provenance: bool,
    with_rename = rename: Vec<(String, String)>,
    with_drop = drop: Vec<String>,
    with_keep = keep: Vec<String>,
    with_keep_bookkeeping = keep_bookkeeping: bool,
    with_memory = memory: u64,
    with_geometry = geometry: GeometryOptions,
    with_table = table: TableOptions,
    #[cfg(feature = "remote")] with_remote = remote: hyperslab_remote::RemoteOptions,
    with_page_size = page_size: into Option<u64>,
    with_preamble = preamble: into Option<bytes::Bytes>,
} }

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
            page_size: None,
            preamble: None,
            raw: false,
            materialise: false,
            provenance: false,
            rename: Vec::new(),
            drop: Vec::new(),
            keep: Vec::new(),
            keep_bookkeeping: true,
            memory: 256 << 20,
            geometry: GeometryOptions::default(),
            table: TableOptions::default(),
            rewrite: false,
            dry_run: false,
            #[cfg(feature = "remote")]
            remote: hyperslab_remote::RemoteOptions::default(),
        }
    }
}

impl ConvertOptions {
    /// The options for staging a single file.
    fn stage(&self) -> StageOptions {
        StageOptions::default().with_replace(self.replace).with_sync(self.sync)
    }

    /// Returns true if any option is set that only applies to arrays.
    fn shapes_arrays(&self) -> bool {
        self.chunk_shape.is_some()
            || !self.chunk_extents.is_empty()
            || self.chunk_bytes.is_some()
            || self.shard_shape.is_some()
            || self.filters.is_some()
            || !self.unlimited.is_empty()
    }
}

/// The result of a conversion.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct ConvertReport {
    /// The number of arrays written.
    pub arrays: u64,
    /// The number of rows of a table, or of vertices of a geometry.
    pub rows: u64,
    /// The size of the elements in bytes.
    pub bytes: u64,
    /// The number of chunks whose stored bytes were copied unchanged.
    pub copied_chunks: u64,
    /// Content that the target cannot hold as is, and how it was handled.
    pub losses: Vec<Loss>,
}

/// Content that the target could not hold unchanged.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Loss {
    /// The node.
    pub path: String,
    /// A description of the loss or change, and the reason.
    pub what: String,
    /// Whether content is missing from the target. Otherwise it is stored in another form.
    pub dropped: bool,
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path, self.what)
    }
}

impl ConvertReport {
    /// The losses of content that is missing from the target.
    pub fn dropped(&self) -> impl Iterator<Item = &Loss> {
        self.losses.iter().filter(|loss| loss.dropped)
    }

    /// The losses as lines of text.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        self.losses.iter().map(Loss::to_string).collect()
    }

    /// Adds notes from before the conversion.
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

/// The bytes before the content of the target's file and its page size, as given by the options or else by the
/// source.
fn file_layout(
    source: &OpenStore,
    format: Format,
    same: bool,
    options: &ConvertOptions,
    report: &mut ConvertReport,
) -> Result<(Option<bytes::Bytes>, Option<u64>)> {
    let capabilities = format.info().capabilities;
    if options.page_size.is_some() && !capabilities.pages {
        return Err(Error::invalid(format!("{} files have no pages; only HDF5 files do", format.name())));
    }
    if options.preamble.is_some() && !capabilities.preamble {
        return Err(Error::invalid(format!(
            "{} files have no user block; only HDF5 files do",
            format.name()
        )));
    }
    let preamble = match &options.preamble {
        Some(bytes) => Some(bytes.clone()).filter(|bytes| !bytes.is_empty()),
        None if same => source.inner().preamble().unwrap_or_else(|error| {
            report.drop("/", format!("the bytes before the content are left out: {error}"));
            None
        }),
        None => None,
    };
    let page_size = match options.page_size {
        Some(size) => Some(size).filter(|size| *size > 0),
        None if same => source.inner().page_size()?,
        None => None,
    };
    Ok((preamble, page_size))
}

/// Converts a store. The target appears complete or not at all.
///
/// # Errors
///
/// Any error from reading the source or writing the target; [`Invalid`](Error::Invalid) if cancelled.
pub fn convert(
    source: &OpenStore,
    target: &Path,
    format: Format,
    options: &ConvertOptions,
    progress: &Progress,
) -> Result<ConvertReport> {
    #[cfg(feature = "remote")]
    if let Some(url) = crate::location::remote_url(target) {
        return crate::upload::convert_to(source, url, format, options, progress);
    }
    let target = &*crate::location::local_path(target);
    if same_file(source.path(), target) {
        return Err(Error::invalid(format!(
            "{} is the source or contains it; choose another target",
            target.display()
        )));
    }
    convert_into(source, target, format, options, progress)
}

/// Like [`convert`], but the target may be the source itself, which is replaced once everything is written.
pub(crate) fn convert_into(
    source: &OpenStore,
    target: &Path,
    format: Format,
    options: &ConvertOptions,
    progress: &Progress,
) -> Result<ConvertReport> {
    convert_with(source, target, format, options, progress, |options| create(target, format, options))
}

/// Like [`convert_into`], for a sink and a target that is a store of arrays.
pub(crate) fn convert_with(
    source: &OpenStore,
    target: &Path,
    format: Format,
    options: &ConvertOptions,
    progress: &Progress,
    sink: impl FnOnce(&CreateOptions) -> Result<Box<dyn Sink>>,
) -> Result<ConvertReport> {
    if let Some((view, options)) = chosen::view(source, options)? {
        return convert_with(&view, target, format, &options, progress, sink);
    }
    if let Some(node) = &options.node {
        let listed = crate::fields::listed_path(source, node);
        if listed != normal_path(node) {
            let options = ConvertOptions { node: Some(listed), ..options.clone() };
            return convert_with(source, target, format, &options, progress, sink);
        }
    }
    let same_format = source.format() == format.name();
    let whole = options.node.is_none() && options.selection == Selection::all();
    // Within one format, content stored in a form is copied in that form.
    let as_stored = (same_format && whole).then(|| source.as_stored());
    let source = as_stored.as_ref().unwrap_or(source);
    if format.writes_geometry() {
        if options.dry_run {
            return Ok(ConvertReport::default());
        }
        if options.replace {
            check_replaceable(target, format.info().created_form())?;
        }
        let only: Vec<String> = options.node.iter().cloned().collect();
        let nodes = nodes::by_path(source, &only)?.all_nodes()?;
        return geometry::convert(source, &nodes, (target, format), options, progress);
    }
    check::check_format(format, options)?;
    if format.info().capabilities.tables
        && let Some((found, selection)) = table::table_of(source, target, options)?
    {
        return table::convert((&found, selection), target, format, options, progress);
    }
    if !options.table.is_empty() {
        return Err(Error::invalid(
            "dimensions, duplicates and row order only apply to a table or an array of structs, in an output format with tables",
        ));
    }
    let keeps_links = same_format && format.info().capabilities.links && !options.append;
    let holds_several = format.info().capabilities.several_arrays;
    let subset = Subset::new(source, options.node.as_deref(), &options.selection, holds_several)?;
    let by_identity = keeps_links.then(|| nodes::by_identity(source, &subset.only)).transpose()?;
    let Items { items: mut nodes, paths, renamed, unsupported } = match by_identity.flatten() {
        Some(items) => items,
        None => nodes::by_path(source, &subset.only)?,
    };
    let own_variant = source.inner().variant().filter(|_| same_format);
    // A complete copy within one format keeps the format's bookkeeping unchanged.
    let verbatim = !paths.is_empty()
        && !renamed
        && options.keep_bookkeeping
        && whole
        && options
            .variant
            .is_none_or(|variant| !variant.info().netcdf_types || Some(variant.name()) == own_variant);
    let as_is = verbatim || options.rewrite;
    let holds_values = |item: &Item| match item.node() {
        Some(Node::Array(array)) => !array.schema().is_dimension,
        Some(Node::Table(_) | Node::Geometry(_)) => true,
        _ => false,
    };
    let several = nodes.iter().filter(|(_, item)| holds_values(item)).count() > 1;
    let mut report = ConvertReport::default();
    for (path, why) in &unsupported {
        report.drop(path, format!("not converted: {why}"));
    }
    let (preamble, page_size) = file_layout(source, format, keeps_links, options, &mut report)?;
    let create_options = CreateOptions::default()
        .with_replace(options.replace)
        .with_sync(options.sync)
        .with_append(options.append)
        .with_only_array(true)
        .with_source(source.format().to_owned())
        .with_shard_shape(options.shard_shape.clone())
        .with_variant(options.variant.or_else(|| format.info().variant(own_variant?)))
        .with_verbatim(verbatim)
        .with_rewrite(options.rewrite)
        .with_preamble(preamble)
        .with_page_size(page_size);
    let variant = create_options.variant;
    let described = TargetFormat::new(source, format, variant, verbatim).with_types_as_is(options.rewrite);
    let labels = PlacedLabels::new(&mut nodes, format, same_format, &mut report)?;
    let (mut nodes, mut refused) = forms::planned(nodes, (format, variant), !several, &mut report)?;
    let flat = format.info().capabilities.no_groups;
    if let (true, Some(group)) = (flat, &options.node)
        && matches!(source.node(group)?, Node::Group(_))
    {
        forms::place_in_root(&mut nodes, group);
    }
    if let Some((_, why)) = unsupported.into_iter().next() {
        // Rewriting a store must not lose anything.
        if options.rewrite {
            return Err(why);
        }
        refused.get_or_insert(why);
    }
    let mut left_out: Option<String> = None;
    let mut sink = sink(&create_options)?;
    let filter_choice = spec::FilterChoice::new(options, format, same_format);
    let (mut copies, mut tables, mut filters) = (Vec::new(), Vec::new(), Vec::new());
    let stored = Stored {
        source,
        target,
        paths: &paths,
        verbatim,
        materialise: options.materialise || options.shapes_arrays(),
    };
    let attributes_of = |path: &str, attributes: &Attributes, report: &mut ConvertReport| {
        let mut kept = described.attributes(path, attributes, report);
        stored.attributes(path, &mut kept, report);
        if !format.info().capabilities.attributes {
            spec::report_attributes(path, &kept, format, report);
        }
        if options.provenance { provenance::noted(&kept, path, source, format) } else { kept }
    };
    // All nodes are declared before the first chunk is written, because formats lay out their directories then.
    for PlannedNode { path, origin, item } in &nodes {
        // A group that is left out takes its children with it.
        if left_out.as_ref().is_some_and(|group| path.starts_with(group.as_str())) {
            continue;
        }
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
            Node::Group(_) if flat && path != "/" => {
                let why = Error::unsupported(target.display().to_string(), "a group below the root");
                report.drop(path, format!("not converted, with everything in it: {why}"));
                refused.get_or_insert(why);
                left_out = Some(format!("{path}/"));
            }
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
                    && let [axis] = subset.positions(origin, schema)?.axes[..]
                    && axis.keep
                {
                    let limit = spec::dimension_limit(path, axis.count, *limit, own, options);
                    sink.dimension(path, axis.count, limit)?;
                }
            }
            Node::Array(array) => {
                let (array, change) = forms::netcdf_form(array, format, variant, as_is)?;
                change.into_iter().for_each(|change| report.change(path, change));
                let reader = source.reader(array);
                let positions = subset.positions(origin, reader.schema())?;
                let mut copy = ArrayCopy::new(reader, positions, options, same_format)?;
                if let Some(note) = spec::other_rank(&copy.spec, options) {
                    report.change(path, note);
                }
                if forms::needs_netcdf4_types(variant, as_is) && !netcdf::has_fill(&copy.spec.dtype) {
                    copy.spec.fill = Fill::Zero;
                }
                subset.name_scalars(
                    origin,
                    copy.reader.schema(),
                    &copy.positions,
                    &mut copy.spec.attributes,
                )?;
                labels.place(origin, copy.reader.schema(), &copy.positions, &mut copy.spec);
                described.drop_generated_names(&mut copy.spec);
                copy.spec.attributes = attributes_of(path, &copy.spec.attributes, &mut report);
                spec::report_enumeration(path, &copy.spec.dtype, format, &mut report);
                stored.array(path, &mut copy.spec, &mut report);
                if !keeps_links && copy.reader.schema().stored.no_space {
                    report.change(path, "it is empty (null dataspace); written as a zero-length array");
                }
                let own = &copy.reader.schema().filters;
                let mut created =
                    spec::create(&mut *sink, path, &mut copy.spec, own, filter_choice, &mut filters);
                if stored.is_virtual(&copy.spec) && created.as_ref().is_err_and(Error::is_unsupported) {
                    stored.materialise(path, &mut copy.spec, &mut report);
                    created =
                        spec::create(&mut *sink, path, &mut copy.spec, own, filter_choice, &mut filters);
                }
                match created {
                    // The elements of a virtual array are those of other arrays.
                    Ok(_) if stored.is_virtual(&copy.spec) => report.arrays += 1,
                    Ok(array_sink) => {
                        if !same_format && copy.reader.schema().dtype == DType::Reference {
                            report.change(path, "references are stored as the paths of what they refer to");
                        }
                        progress.total.fetch_add(copy.bytes, Ordering::Relaxed);
                        copies.push((copy, array_sink));
                    }
                    // An unsupported array is reported, and the others are still converted.
                    Err(why) if why.is_unsupported() && several => {
                        report.drop(path, format!("not converted: {why}"));
                        refused.get_or_insert(why);
                    }
                    Err(why) => return Err(why),
                }
            }
            Node::Table(_) if format.info().capabilities.several_arrays => {
                let reader = source.table(origin)?;
                let attributes = attributes_of(path, &reader.schema().attributes, &mut report);
                report.change(path, "a table is stored as a group with an array per column");
                let holds = |dtype: &_| forms::holds_as_is(dtype, format, variant);
                let declaration = Declaration {
                    holds: &NativeSupport::new(&holds, format.info().capabilities),
                    options,
                    filter_choice,
                    filters: &mut filters,
                    report: &mut report,
                };
                match TableCopy::declare(&mut *sink, path, reader, attributes, declaration) {
                    Ok(table) => tables.push(table),
                    Err(why) if why.is_unsupported() && several => {
                        report.drop(path, format!("not converted: {why}"));
                        refused.get_or_insert(why);
                    }
                    Err(why) => return Err(why),
                }
            }
            Node::Type(dtype, attributes) if keeps_links => {
                let attributes = attributes_of(path, attributes, &mut report);
                let Some(named) = source.inner().stored_type(path)? else {
                    report.drop(path, "the target has no named types; arrays keep their element types");
                    continue;
                };
                sink.named_type(path, dtype, &attributes, &named)?;
            }
            Node::Type(..) => {
                report.change(path, "the target has no named types; arrays keep their element types");
            }
            other => report.drop(
                path,
                format!("not converted: it is {}, which the output format does not hold", other.kind().one()),
            ),
        }
    }
    // Use the dimension names of the source: in a copy within one format, they are in attributes.
    let arrays = copies.iter().map(|(copy, _)| (&*copy.reader.schema().dimensions, copy.spec.grid.rank()));
    check::check_arrays(options, arrays)?;
    for (path, change) in sink.changes() {
        report.change(&path, change);
    }
    if let (true, Some(loss)) = (options.strict, report.losses.first()) {
        return Err(Error::invalid(format!("{loss}; nothing was written")));
    }
    if copies.is_empty() && tables.is_empty() && report.arrays == 0 {
        // If nothing with values was converted although the source has some, the conversion has failed.
        if let Some(why) = refused {
            return Err(why);
        }
        let values = nodes.iter().filter_map(|planned| Some((&planned.path, planned.item.node()?)));
        let mut values = values.filter(|(_, node)| matches!(node, Node::Table(_) | Node::Geometry(_)));
        if let Some((path, node)) = values.next() {
            let what = format!("{path} is {}, which {} does not hold", node.kind().one(), format.name());
            return Err(Error::unsupported(target.display().to_string(), what));
        }
        if !format.info().capabilities.attributes && !report.losses.is_empty() {
            let what = format!("a store without arrays in {}, which holds nothing else", format.name());
            return Err(Error::unsupported(target.display().to_string(), what));
        }
    }
    // Filters and chunks are no content, so what becomes of them is reported but is never an error, even with `strict`.
    let unused = check::unused_chunks(format, options).map(|what| ("/".to_owned(), what));
    for (path, what) in filters.into_iter().chain(unused) {
        report.change(&path, what);
    }
    // Of the values, a format only refuses references, for what they refer to.
    copies.retain(|(copy, _)| !options.dry_run || copy.spec.dtype.has_references());
    for (copy, array_sink) in copies {
        report.copied_chunks += copy.run(&*array_sink, options, progress)?;
        report.arrays += 1;
        report.bytes += copy.bytes;
    }
    for table in tables.into_iter().filter(|_| !options.dry_run) {
        let (rows, bytes) = table.run(progress)?;
        report.rows += rows;
        report.bytes += bytes;
    }
    for (path, what) in sink.finish()? {
        report.drop(&path, what);
    }
    if let (true, Some(loss)) = (options.strict, report.dropped().next()) {
        return Err(Error::invalid(format!("{loss}; nothing was written")));
    }
    if !options.dry_run {
        sink.commit()?;
    }
    Ok(report)
}

/// All nodes of a store, parents first. An array and its field of the same name are one node.
pub(crate) fn nodes_by_path(source: &OpenStore) -> Result<Vec<(String, Node)>> {
    nodes::by_path(source, &[])?.all_nodes()
}

/// Returns true if the target is the source or a folder above it. Replacing it would remove the source.
pub(crate) fn same_file(source: &Path, target: &Path) -> bool {
    matches!((source.canonicalize(), target.canonicalize()), (Ok(source), Ok(target)) if source.starts_with(&target))
}
