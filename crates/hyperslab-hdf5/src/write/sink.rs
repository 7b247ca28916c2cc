//! The sink that creates a new file.

use std::path::Path;
use std::sync::Arc;

use hyperslab_core::storage::{LocalFile, StageOptions, StagedFile};
use hyperslab_core::{
    ArraySink, ArraySpec, Attributes, DType, Error, LinkTarget, Result, Sink, StoredGroup, StoredNamedType,
    normal_path,
};

use super::array::{NewArray, Shared};
use super::node::{ChildTarget, NewKind, array_attributes, checked_attributes};
use super::object::Style;
use super::options::{Compatibility, Hdf5Options};
use super::output::Output;
use super::plan::Plan;
use super::scales;
use super::space;
use super::tree::Tree;
use super::types::{file_type, fitting};
use crate::file::{Sizes, lock};
use crate::message::datatype::{Class, Type};
use crate::superblock::Superblock;
use crate::symbol_table::{LEAF_K, TREE_K};

/// The widths of addresses and lengths in new files.
const SIZES: Sizes = Sizes { address: 8, length: 8 };

/// A new HDF5 file. It is written beside its path and moved there by [`commit`](Sink::commit). Dropping it without a commit
/// leaves no file.
///
/// Chunks may be written in any order from any thread. The file holds them in the order of the writes.
///
/// ```
/// use hyperslab_core::{ArraySpec, Attributes, DType, Elements, Filter, Grid, Sink};
/// use hyperslab_hdf5::{Hdf5Options, Hdf5Sink};
/// # fn main() -> hyperslab_core::Result<()> {
/// # let folder = std::env::temp_dir().join(format!("hyperslab-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// # let path = folder.join("x.h5");
/// let mut sink = Box::new(Hdf5Sink::create(&path, Hdf5Options::default())?);
/// sink.group("/run", &Attributes::from_iter([("who", "me")]))?;
/// let spec = ArraySpec::new(DType::UInt8, Grid::new(&[6], &[4])?)
///     .with_filters([Filter::new("gzip").with("level", 6)]);
/// let array = sink.array("/run/x", &spec)?;
/// for (chunk, values) in [(0, vec![1, 2, 3, 4]), (1, vec![5, 6])] {
///     let chunk = [chunk].as_slice().into();
///     array.write(&chunk, array.encode(&chunk, &Elements::fixed(values))?)?;
/// }
/// sink.commit()?;
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Hdf5Sink {
    staged: StagedFile,
    shared: Arc<Shared>,
    tree: Tree,
    options: Hdf5Options,
    /// Committed types and their paths.
    committed: Vec<(Type, String)>,
    /// Whether everything is written.
    finished: bool,
}

impl Hdf5Sink {
    /// Creates a file at `path`, where it appears at the commit.
    ///
    /// # Errors
    ///
    /// [`Exists`](hyperslab_core::Error::Exists) when the path exists and is not to be replaced,
    /// [`Io`](hyperslab_core::Error::Io) when the folder cannot be written to.
    pub fn create(path: &Path, options: Hdf5Options) -> Result<Self> {
        let stage = StageOptions::default().with_replace(options.replace).with_sync(options.sync);
        let staged = StagedFile::create(path, stage)?;
        let file = LocalFile::of(&staged)?;
        let name: Arc<str> = path.display().to_string().into();
        let style = if options.compatibility == Compatibility::Earliest { Style::Old } else { Style::New };
        let base = options.user_block.len() as u64;
        if base != 0 && !(base >= 512 && base.is_power_of_two()) {
            return Err(Error::invalid(format!(
                "a user block of {base} bytes: HDF5 has 512, 1024, 2048 and so on"
            )));
        }
        // The superblock is written last.
        let head = match style {
            Style::Old => 24 + 5 * SIZES.address as u64 + SIZES.length as u64 + 24,
            Style::New => 16 + 4 * SIZES.address as u64,
        };
        let page = options.page_size.filter(|_| style == Style::New);
        page.map(space::check_page).transpose()?;
        let output = Output::new(file, name, base, head).with_pages(page)?;
        let shared = Shared { all_declared: options.all_declared, ..Shared::new(output, SIZES, style) };
        let shared = Arc::new(shared);
        lock(&shared.names).declare("/");
        Ok(Self { staged, shared, tree: Tree::new(style), options, committed: Vec::new(), finished: false })
    }

    /// Like [`Sink::array`], with options of its own.
    ///
    /// # Errors
    ///
    /// As [`Sink::array`].
    pub fn dataset(
        &mut self,
        path: &str,
        spec: &ArraySpec,
        options: &Hdf5Options,
    ) -> Result<Arc<dyn ArraySink>> {
        let options = Hdf5Options { compatibility: self.options.compatibility, ..options.clone() };
        // The root is always a group: an array at the root is stored as `data`.
        let path = &match normal_path(path) {
            root if root == "/" => "/data".to_owned(),
            path => path,
        };
        let name = format!("{}{path}", self.shared.output.name());
        self.tree.check(path)?;
        let mut plan = Plan::new(name, spec, &options, &self.shared)?;
        if self.options.commit_types && plan.named_type.is_none() {
            plan.named_type = self.committed(path, &spec.dtype, &plan.dtype)?;
        }
        let attributes = array_attributes(spec, self.options.verbatim, &self.shared)?;
        let array = Arc::new(NewArray::new(plan, &self.shared)?);
        let index = self.tree.add(path, NewKind::Array(Arc::clone(&array)), attributes)?;
        self.tree.nodes[index].stored.object.clone_from(&spec.stored.object);
        lock(&self.shared.names).declare(path);
        Ok(array)
    }

    /// The committed type of a dataset, created on first use; `None` for types that need none.
    fn committed(&mut self, path: &str, dtype: &DType, own: &Type) -> Result<Option<String>> {
        if !matches!(own.class, Class::Enum { .. } | Class::Compound { .. } | Class::Sequence(_)) {
            return Ok(None);
        }
        if let Some((_, known)) = self.committed.iter().find(|(known, _)| known == own) {
            return Ok(Some(known.clone()));
        }
        // The names by which other programs recognise complex numbers.
        let mut name = match dtype {
            DType::Complex64 => "/_PFNC_FLOAT_COMPLEX_TYPE".to_owned(),
            DType::Complex128 => "/_PFNC_DOUBLE_COMPLEX_TYPE".to_owned(),
            _ => format!("/{}_t", path.rsplit('/').next().unwrap_or_default()),
        };
        while self.tree.check(&name).is_err() {
            name.push('_');
        }
        self.tree.add(&name, NewKind::Type(own.clone().into()), Vec::new())?;
        lock(&self.shared.names).declare(&name);
        self.committed.push((own.clone(), name.clone()));
        Ok(Some(name))
    }

    fn write_nodes(&mut self) -> Result<()> {
        if self.options.dimension_scales {
            scales::plan(&mut self.tree, &self.shared, &self.options)?;
        }
        let output = &self.shared.output;
        self.tree.flush_arrays(output)?;
        let symbols = self.tree.write(&self.shared)?;
        let extension = output.page().map(|page| space::write_pages(page, SIZES, output)).transpose()?;
        let superblock = Superblock {
            version: 3,
            sizes: SIZES,
            base: self.options.user_block.len() as u64,
            end: output.length(),
            root: self.tree.nodes[0].address,
            extension,
            driver: None,
            flags: 0,
            halves: (LEAF_K, TREE_K),
        };
        let head = match symbols {
            Some((tree, heap)) => superblock.encode_old(tree, heap)?,
            None => superblock.encode()?,
        };
        output.write_at(0, &head)?;
        output.write_user_block(&self.options.user_block)?;
        self.finished = true;
        output.set_length(superblock.end)
    }
}

impl Sink for Hdf5Sink {
    fn group(&mut self, path: &str, attributes: &Attributes) -> Result<()> {
        self.group_as(path, attributes, &StoredGroup::default())
    }

    fn group_as(&mut self, path: &str, attributes: &Attributes, stored: &StoredGroup) -> Result<()> {
        self.tree.check(path)?;
        let attributes = checked_attributes(attributes, self.options.verbatim, &self.shared)?;
        let index = self.tree.add(path, NewKind::Group { made: true }, attributes)?;
        self.tree.nodes[index].stored.clone_from(stored);
        lock(&self.shared.names).declare(path);
        Ok(())
    }

    fn link(&mut self, path: &str, target: &LinkTarget<String>) -> Result<()> {
        self.tree.check(path)?;
        let target = match target {
            LinkTarget::Hard(other) => {
                let mut names = lock(&self.shared.names);
                let found = self.tree.get(&names.canonical(other));
                let index = found.ok_or_else(|| {
                    Error::invalid(format!("{path}: a link to {other}, which does not exist"))
                })?;
                names.alias(path, other);
                ChildTarget::Node(index)
            }
            LinkTarget::Soft(path) => ChildTarget::Soft(path.clone()),
            LinkTarget::External { .. } if self.shared.style == Style::Old => {
                return Err(Error::unsupported(path, "external links in a file for libraries before 1.8"));
            }
            LinkTarget::External { file, path } => {
                ChildTarget::External { file: file.clone(), path: path.clone() }
            }
            LinkTarget::Other(kind) => {
                return Err(Error::unsupported(
                    path,
                    format!("a link of kind {kind}, which is known only to the program that wrote it"),
                ));
            }
        };
        self.tree.link(path, target)
    }

    fn named_type(
        &mut self,
        path: &str,
        dtype: &DType,
        attributes: &Attributes,
        stored: &StoredNamedType,
    ) -> Result<()> {
        self.tree.check(path)?;
        let attributes = checked_attributes(attributes, self.options.verbatim, &self.shared)?;
        let own = match fitting(&stored.dtype, dtype, self.shared.sizes) {
            Some((own, _)) => own,
            None => file_type(dtype, self.shared.sizes)?,
        };
        // Datasets of this type need no other. NetCDF-C stores a copy of a committed type with each variable.
        self.committed.push((own.clone(), path.to_owned()));
        let index = self.tree.add(path, NewKind::Type(own.into()), attributes)?;
        let node = &mut self.tree.nodes[index];
        node.stored.object.clone_from(&stored.object);
        lock(&self.shared.names).declare(path);
        Ok(())
    }

    fn dimension(&mut self, path: &str, length: u64, limit: Option<u64>) -> Result<()> {
        if !self.options.dimension_scales {
            return Ok(());
        }
        let path = normal_path(path);
        self.tree.check(&path)?;
        scales::make_bare(&mut self.tree, &path, length, limit, &self.shared, &self.options)?;
        lock(&self.shared.names).declare(&path);
        Ok(())
    }

    fn array(&mut self, path: &str, spec: &ArraySpec) -> Result<Arc<dyn ArraySink>> {
        let options = self.options.clone();
        self.dataset(path, spec, &options)
    }

    fn attributes(&mut self, path: &str, attributes: &Attributes) -> Result<()> {
        let path = normal_path(path);
        let Some(index) = self.tree.get(&path) else {
            return Err(Error::not_found(Arc::clone(self.shared.output.name()), path));
        };
        for new in checked_attributes(attributes, false, &self.shared)? {
            self.tree.nodes[index].set_attribute(new);
        }
        Ok(())
    }

    fn changes(&self) -> Vec<(String, String)> {
        let ignored = self.options.page_size.filter(|_| self.shared.output.page().is_none());
        let words = ignored
            .map(|page| format!("not divided into pages of {page} bytes, which old libraries cannot read"));
        words.into_iter().map(|words| ("/".to_owned(), words)).collect()
    }

    fn finish(&mut self) -> Result<Vec<(String, String)>> {
        self.write_nodes()?;
        let mut losses = lock(&self.shared.names).take_losses();
        if self.shared.style == Style::Old {
            losses.extend(self.tree.lost_creation_orders());
        }
        Ok(losses)
    }

    fn commit(mut self: Box<Self>) -> Result<()> {
        if !self.finished {
            self.write_nodes()?;
        }
        self.staged.publish()
    }
}
