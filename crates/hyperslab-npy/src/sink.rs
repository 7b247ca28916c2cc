//! Writing `.npy` and `.npz`.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use hyperslab_core::storage::{StageOptions, StagedFile};
use hyperslab_core::{
    ArraySink, ArraySpec, Attributes, ChunkCoord, DType, Elements, EncodedChunk, Error, Grid, NodeNames,
    Result, Sink,
};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::array::{SLAB_BYTES, data_bytes};
use crate::header::encode_header;

/// Writes a `.npy` file, which holds one array.
#[derive(Debug)]
pub struct NpySink {
    staged: Option<StagedFile>,
    array: Option<Arc<SlabSink>>,
}

impl NpySink {
    /// Starts a file that will be published at `target`.
    ///
    /// # Errors
    ///
    /// As [`StagedFile::create`].
    pub fn create(target: &Path, options: StageOptions) -> Result<Self> {
        Ok(Self { staged: Some(StagedFile::create(target, options)?), array: None })
    }
}

impl Sink for NpySink {
    fn group(&mut self, path: &str, _: &Attributes) -> Result<()> {
        if path == "/" {
            Ok(())
        } else {
            Err(Error::invalid(format!("a .npy file holds one array and cannot hold the group {path}")))
        }
    }

    fn array(&mut self, path: &str, spec: &ArraySpec) -> Result<Arc<dyn ArraySink>> {
        let staged = match (&self.staged, &self.array) {
            (Some(staged), None) => staged,
            _ => {
                return Err(Error::invalid(format!(
                    "a .npy file holds one array and cannot hold {path} as well; use .npz"
                )));
            }
        };
        let file = staged.file().try_clone().map_err(|source| staged.failed(source))?;
        let sink = Arc::new(SlabSink::create(&Arc::new(Mutex::new(file)), 0, spec, staged.target())?);
        self.array = Some(Arc::clone(&sink));
        Ok(sink)
    }

    fn commit(mut self: Box<Self>) -> Result<()> {
        match (self.staged.take(), &self.array) {
            (Some(staged), Some(_)) => staged.publish(),
            _ => Err(Error::invalid("a .npy file needs an array")),
        }
    }
}

/// The names of members. The file name of a member ends in `.npy`, which NumPy strips: `x` and `x.npy` would be the same array.
const MEMBER_NAMES: NodeNames = NodeNames::new("npz", |name| name.ends_with(".npy") || name.len() > 251);

/// Writes a `.npz` archive.
#[derive(Debug)]
pub struct NpzSink {
    staged: StagedFile,
    /// Chunks arrive in any order and zip members are streams, so all members are built in one separate file.
    scratch: Arc<Mutex<File>>,
    /// Each member and its place in that file.
    members: Vec<(String, Range<u64>)>,
    names: HashSet<String>,
}

impl NpzSink {
    /// Starts a file that will be published at `target`.
    ///
    /// # Errors
    ///
    /// As [`StagedFile::create`].
    pub fn create(target: &Path, options: StageOptions) -> Result<Self> {
        let staged = StagedFile::create(target, options)?;
        let folder = staged.path().parent().unwrap_or_else(|| Path::new("."));
        let scratch = tempfile::tempfile_in(folder).map_err(|source| staged.failed(source))?;
        let scratch = Arc::new(Mutex::new(scratch));
        Ok(Self { staged, scratch, members: Vec::new(), names: HashSet::new() })
    }
}

impl Sink for NpzSink {
    fn group(&mut self, _: &str, _: &Attributes) -> Result<()> {
        // Member names contain the path, so groups need no entry.
        Ok(())
    }

    fn array(&mut self, path: &str, spec: &ArraySpec) -> Result<Arc<dyn ArraySink>> {
        // Other tools unpack members as files, so their names follow the rules of file names.
        let key = MEMBER_NAMES.key(&self.staged.target().display().to_string(), path)?;
        let name = if key.is_empty() { "arr_0" } else { key.as_str() };
        if self.names.contains(name) {
            return Err(Error::invalid(format!("{path} already exists")));
        }
        let start = self.members.last().map_or(0, |(_, place)| place.end);
        let sink = SlabSink::create(&self.scratch, start, spec, self.staged.target())?;
        self.names.insert(name.to_owned());
        self.members.push((name.to_owned(), start..sink.end));
        Ok(Arc::new(sink))
    }

    fn commit(self: Box<Self>) -> Result<()> {
        let Self { staged, scratch, members, .. } = *self;
        let mut scratch = scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let mut archive = ZipWriter::new(BufWriter::new(staged.file()));
        let options =
            SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
        for (name, place) in members {
            let copied = archive
                .start_file(format!("{name}.npy"), options)
                .map_err(io::Error::other)
                .and_then(|()| scratch.seek(SeekFrom::Start(place.start)))
                .and_then(|_| {
                    io::copy(&mut Read::by_ref(&mut *scratch).take(place.end - place.start), &mut archive)
                });
            copied.map_err(|source| staged.failed(source))?;
        }
        let done = archive.finish().map_err(io::Error::other).and_then(|mut writer| writer.flush());
        done.map_err(|source| staged.failed(source))?;
        staged.publish()
    }
}

/// An array in C order, written in place slab by slab.
#[derive(Debug)]
struct SlabSink {
    file: Arc<Mutex<File>>,
    spec: ArraySpec,
    /// Where the elements begin and end in the file.
    data: u64,
    end: u64,
    target: Arc<str>,
}

impl SlabSink {
    /// An array whose header begins at `start` of the file, which it extends.
    fn create(file: &Arc<Mutex<File>>, start: u64, spec: &ArraySpec, target: &Path) -> Result<Self> {
        let target: Arc<str> = target.display().to_string().into();
        if spec.nullable {
            return Err(Error::unsupported(Arc::clone(&target), "missing elements in NumPy files"));
        }
        // NumPy has no arrays of arrays: the inner shape becomes axes, which leaves the bytes unchanged.
        let (mut dtype, mut shape) = (spec.dtype.clone(), spec.grid.shape().to_vec());
        while let DType::Array(base, inner) = &dtype {
            shape.extend(inner.iter().map(|extent| *extent as u64));
            dtype = (**base).clone();
        }
        let header = encode_header(&dtype, &shape)?;
        let bytes = data_bytes(&spec.dtype, spec.grid.shape())
            .ok_or_else(|| Error::invalid(format!("{target}: the array is larger than 2^64 bytes")))?;
        let data = start + header.len() as u64;
        let end = data
            .checked_add(bytes)
            .ok_or_else(|| Error::invalid(format!("{target}: the arrays are larger than 2^64 bytes")))?;
        let mut own = file.lock().unwrap_or_else(PoisonError::into_inner);
        own.seek(SeekFrom::Start(start))
            .and_then(|_| own.write_all(&header))
            .and_then(|()| own.set_len(end))
            .map_err(|source| Error::io(Arc::clone(&target), source))?;
        drop(own);
        let item = spec.dtype.size().unwrap_or(1) as u64;
        let spec = ArraySpec { grid: Grid::slabs(spec.grid.shape(), item, SLAB_BYTES), ..spec.clone() };
        Ok(Self { file: Arc::clone(file), spec, data, end, target })
    }
}

impl ArraySink for SlabSink {
    fn grid(&self) -> &Grid {
        &self.spec.grid
    }

    fn encode(&self, chunk: &ChunkCoord, elements: &Elements) -> Result<EncodedChunk> {
        self.spec.check_chunk(chunk, elements)?;
        let bytes = elements.as_fixed().cloned().unwrap_or_default();
        Ok(EncodedChunk { raw_length: bytes.len() as u64, parts: vec![bytes], filter_mask: 0, tag: 0 })
    }

    fn write(&self, chunk: &ChunkCoord, encoded: EncodedChunk) -> Result<()> {
        let region = self.spec.grid.region(chunk);
        let strides = hyperslab_core::CellOrder::RowMajor.strides(self.spec.grid.shape());
        let first: u64 = region.start.iter().zip(&strides).map(|(start, stride)| start * stride).sum();
        let offset = self.data + first * self.spec.dtype.size().unwrap_or(0) as u64;
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut write = || {
            file.seek(SeekFrom::Start(offset))?;
            encoded.parts.iter().try_for_each(|part| file.write_all(part))
        };
        write().map_err(|source| Error::io(Arc::clone(&self.target), source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_core::{FileBlob, Node, Positions, Store, read_serial};

    #[test]
    fn members_written_in_turns_are_whole() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("x.npz");
        let mut sink = Box::new(NpzSink::create(&target, StageOptions::default()).unwrap());
        let bytes = |number: u8| Elements::fixed(vec![number; 100]);
        let spec = ArraySpec::new(DType::UInt8, Grid::single(&[100]));
        let names: Vec<String> = (0..20).map(|number| format!("/g/{number}")).collect();
        let arrays: Vec<_> = names.iter().map(|name| sink.array(name, &spec).unwrap()).collect();
        assert!(sink.array("/g/3", &spec).is_err());
        for (number, array) in arrays.iter().enumerate().rev() {
            let chunk = array.grid().coord(0);
            array.write(&chunk, array.encode(&chunk, &bytes(number as u8)).unwrap()).unwrap();
        }
        sink.commit().unwrap();
        let store = crate::NpzStore::open(Arc::new(FileBlob::open(&target).unwrap())).unwrap();
        for (number, name) in names.iter().enumerate() {
            let Node::Array(array) = store.node(name).unwrap() else { panic!("an array") };
            let read = read_serial(&*array, Positions::whole(&[100])).unwrap();
            assert_eq!(read.elements, bytes(number as u8), "{name}");
        }
    }
}
