//! A new file.

use std::path::Path;
use std::sync::Arc;

use hyperslab_core::storage::{StageOptions, StagedFile};
use hyperslab_core::{ArraySink, ArraySpec, Attributes, Result, Sink, normal_path};

use super::array::{NewArray, Shared};
use super::object::Style;
use super::options::{Compatibility, Hdf5Options};
use super::output::Output;
use super::plan::Plan;
use super::scales;
use super::tree::{NewKind, Tree, checked_attributes};
use crate::file::Sizes;
use crate::superblock::Superblock;
use crate::symbols::{LEAF_K, TREE_K};

/// The widths of addresses and lengths in files that we make.
const SIZES: Sizes = Sizes { address: 8, length: 8 };

/// A new HDF5 file. Written beside its path, moved there by [`commit`](Sink::commit); dropped, it leaves nothing.
///
/// Chunks may come in any order from any thread, and stand in the file in the order in which they came.
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
}

impl Hdf5Sink {
    /// Begins a file that will stand at `path`.
    ///
    /// # Errors
    ///
    /// [`Exists`](hyperslab_core::Error::Exists) when something stands there that is not to be replaced,
    /// [`Io`](hyperslab_core::Error::Io) when the folder cannot be written to.
    pub fn create(path: &Path, options: Hdf5Options) -> Result<Self> {
        let stage = StageOptions::default().with_replace(options.replace).with_sync(options.sync);
        let staged = StagedFile::create(path, stage)?;
        let file = staged.file().try_clone().map_err(|source| staged.failed(source))?;
        let name: Arc<str> = path.display().to_string().into();
        let style = if options.compatibility == Compatibility::Earliest { Style::Old } else { Style::New };
        // The superblock is written last.
        let head = match style {
            Style::Old => 24 + 5 * SIZES.address as u64 + SIZES.length as u64 + 24,
            Style::New => 16 + 4 * SIZES.address as u64,
        };
        let output = Output::new(file, name, 0, head);
        let shared = Arc::new(Shared::new(output, SIZES, style));
        Ok(Self { staged, shared, tree: Tree::new(style), options })
    }

    /// As [`Sink::array`], with options of its own.
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
        // The root is always a group: an array that stood there is called `data`.
        let path = &match normal_path(path) {
            root if root == "/" => "/data".to_owned(),
            path => path,
        };
        let name = format!("{}{path}", self.shared.output.name());
        self.tree.check(path)?;
        let plan = Plan::new(name, spec, &options, self.shared.sizes)?;
        let attributes = checked_attributes(&spec.attributes, self.shared.style, self.shared.sizes)?;
        let array = Arc::new(NewArray::new(plan, &self.shared)?);
        self.tree.add(path, NewKind::Array(Arc::clone(&array)), attributes)?;
        Ok(array)
    }

    fn finish(&mut self) -> Result<()> {
        if self.options.dimension_scales {
            scales::plan(&mut self.tree, &self.shared, &self.options)?;
        }
        let output = &self.shared.output;
        self.tree.flush_arrays(output)?;
        let symbols = self.tree.write(&self.shared)?;
        let superblock = Superblock {
            version: 3,
            sizes: SIZES,
            base: 0,
            end: output.length(),
            root: self.tree.nodes[0].address,
            extension: None,
            driver: None,
            flags: 0,
            halves: (LEAF_K, TREE_K),
        };
        let head = match symbols {
            Some((tree, heap)) => superblock.encode_old(tree, heap)?,
            None => superblock.encode()?,
        };
        output.write_at(0, &head)?;
        output.set_length(superblock.end)
    }
}

impl Sink for Hdf5Sink {
    fn group(&mut self, path: &str, attributes: &Attributes) -> Result<()> {
        self.tree.check(path)?;
        let attributes = checked_attributes(attributes, self.shared.style, self.shared.sizes)?;
        self.tree.add(path, NewKind::Group { made: true }, attributes).map(|_| ())
    }

    fn dimension(&mut self, path: &str, length: u64, limit: Option<u64>) -> Result<()> {
        if !self.options.dimension_scales {
            return Ok(());
        }
        let path = normal_path(path);
        self.tree.check(&path)?;
        scales::make_bare(&mut self.tree, &path, length, limit, &self.shared, &self.options).map(|_| ())
    }

    fn array(&mut self, path: &str, spec: &ArraySpec) -> Result<Arc<dyn ArraySink>> {
        let options = self.options.clone();
        self.dataset(path, spec, &options)
    }

    fn commit(mut self: Box<Self>) -> Result<()> {
        self.finish()?;
        self.staged.publish()
    }
}
