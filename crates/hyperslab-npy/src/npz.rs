//! `.npz`: a zip archive of `.npy` members.

use std::collections::HashMap;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use hyperslab_core::{
    Array, ArraySchema, Blob, BlobKey, BlobReader, ChunkCoord, ChunkRef, Depth, Error, Filter, Grid,
    MemoryBlob, Node, Place, Report, Result, Store,
};
use zip::{CompressionMethod, ZipArchive};

use crate::array::{NpyArray, no_attributes, swap_elements};
use crate::header::Header;

/// How much of a compressed member is decoded to parse its header: first a little, then more.
const HEADER_ROOM: [u64; 2] = [1 << 12, 1 << 20];

/// An open `.npz` archive: one array per member, named without the `.npy`.
#[derive(Debug)]
pub struct NpzStore {
    name: Arc<str>,
    blob: Arc<dyn Blob>,
    members: Vec<Member>,
    /// The positions of the members, by name.
    by_name: HashMap<String, usize>,
}

#[derive(Debug, Clone)]
struct Member {
    name: String,
    method: CompressionMethod,
    offset: u64,
    stored: u64,
    size: u64,
    checksum: u32,
}

impl NpzStore {
    /// Opens the archive in `blob`.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](Error::Corrupt) if the directory cannot be read.
    pub fn open(blob: Arc<dyn Blob>) -> Result<Self> {
        let name = Arc::clone(blob.name());
        let place = Place::new(&name, "zip directory", 0);
        let wrong = |error: zip::result::ZipError| place.corrupt(error.to_string());
        let length = blob.len()?;
        let mut archive = ZipArchive::new(BlobReader::new(Arc::clone(&blob))?).map_err(wrong)?;
        let (mut members, mut by_name, mut stored_in_all) = (Vec::new(), HashMap::new(), 0_u64);
        for index in 0..archive.len() {
            let entry = archive.by_index_raw(index).map_err(wrong)?;
            let name = entry.name().map_err(wrong)?;
            let Some(name) = name.strip_suffix(".npy").map(str::to_owned) else { continue };
            let offset = entry.data_start().ok_or_else(|| place.corrupt("a member without data"))?;
            let stored = entry.compressed_size();
            if offset.checked_add(stored).is_none_or(|end| end > length) {
                return Err(place.corrupt(format!("member {name} reaches past the end")));
            }
            // If members could share bytes, a small archive could claim arrays of any total size.
            stored_in_all = stored_in_all.saturating_add(stored);
            if stored_in_all > length {
                return Err(place.corrupt(format!("member {name} overlaps another")));
            }
            by_name.entry(name.clone()).or_insert(members.len());
            members.push(Member {
                name,
                method: entry.compression(),
                offset,
                stored,
                size: entry.size(),
                checksum: entry.crc32(),
            });
        }
        Ok(Self { name, blob, members, by_name })
    }

    fn array(&self, member: &Member) -> Result<Arc<dyn Array>> {
        let name: Arc<str> = format!("{}/{}", self.name, member.name).into();
        match member.method {
            CompressionMethod::Stored => {
                let end = Some(member.offset + member.stored);
                let array = NpyArray::open(Arc::clone(&self.blob), member.offset, end, name)?;
                Ok(Arc::new(
                    array.with_checksum(member.offset..member.offset + member.stored, member.checksum),
                ))
            }
            CompressionMethod::Deflated => {
                Ok(Arc::new(DeflatedArray::open(Arc::clone(&self.blob), member.clone(), name)?))
            }
            other => Err(Error::unsupported(name, format!("zip compression {other}"))),
        }
    }
}

impl Store for NpzStore {
    fn format(&self) -> &'static str {
        "npz"
    }

    fn keeps_checksums(&self) -> bool {
        true
    }

    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn children(&self, path: &str) -> Result<Vec<String>> {
        match path {
            "/" => Ok(self.members.iter().map(|member| member.name.clone()).collect()),
            _ => self.node(path).map(|_| Vec::new()),
        }
    }

    fn node(&self, path: &str) -> Result<Node> {
        if path == "/" {
            return Ok(Node::Group(no_attributes()));
        }
        let found = path.strip_prefix('/').and_then(|name| self.by_name.get(name));
        match found.map(|number| &self.members[*number]) {
            Some(member) => self.array(member).map(Node::Array),
            None => Err(Error::not_found(Arc::clone(&self.name), path)),
        }
    }

    fn verify(&self, depth: Depth, report: &mut Report) -> Result<()> {
        for member in &self.members {
            match self.array(member) {
                Ok(_) => report.passed("npy_header", "the header and the length of the data agree"),
                Err(error) => report.failure("npy_header", &error),
            }
            report.at_node(&format!("/{}", member.name));
        }
        if depth == Depth::Deep {
            self.verify_checksums(report)?;
        }
        Ok(())
    }
}

impl NpzStore {
    /// Zip stores a CRC-32 of every member. Reading to the end verifies it.
    fn verify_checksums(&self, report: &mut Report) -> Result<()> {
        let place = Place::new(&self.name, "zip directory", 0);
        let mut archive = ZipArchive::new(BlobReader::new(Arc::clone(&self.blob))?)
            .map_err(|error| place.corrupt(error.to_string()))?;
        for index in 0..archive.len() {
            let read = archive.by_index(index).map_err(io::Error::other).and_then(|mut entry| {
                let name = entry.name().map_err(io::Error::other)?.into_owned();
                io::copy(&mut entry, &mut io::sink()).map(|_| name)
            });
            match read {
                Ok(name) => report.passed("member_checksum", name),
                Err(error) => report.error("member_checksum", format!("member {index}: {error}")),
            }
        }
        Ok(())
    }
}

/// Refuses a member whose checksum differs from the one in the directory.
pub(crate) fn compare_checksums(place: Place<'_>, found: u32, expected: u32) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(place.corrupt(format!("CRC-32 {found:#010x} of the member, stored {expected:#010x}")))
}

/// A deflated member: one chunk, decoded as a whole.
#[derive(Debug)]
struct DeflatedArray {
    name: Arc<str>,
    blob: Arc<dyn Blob>,
    member: Member,
    schema: ArraySchema,
    header: Header,
    header_length: u64,
}

impl DeflatedArray {
    fn open(blob: Arc<dyn Blob>, member: Member, name: Arc<str>) -> Result<Self> {
        let place = Place::new(&name, "npy header", member.offset);
        let stored = blob.read_at(member.offset, member.stored)?;
        let read = |room: u64| {
            let mut head = Vec::new();
            let mut decoder = flate2::read::DeflateDecoder::new(&stored[..]).take(room);
            decoder.read_to_end(&mut head).map_err(|error| place.corrupt(error.to_string()))?;
            let length = head.len() as u64;
            Header::read(&MemoryBlob::new(Arc::clone(&name), head), 0..length, Place { offset: 0, ..place })
        };
        let (header, header_length) = read(HEADER_ROOM[0]).or_else(|_| read(HEADER_ROOM[1]))?;
        let mut schema = header.schema();
        schema.grid = Grid::single(&header.shape);
        schema.filters = vec![Filter::new("deflate")];
        if schema.bytes().and_then(|bytes| bytes.checked_add(header_length)) != Some(member.size) {
            return Err(place.corrupt(format!("a member of {} bytes for {:?}", member.size, header.shape)));
        }
        Ok(Self { name, blob, member, schema, header, header_length })
    }

    fn reference(&self) -> ChunkRef {
        ChunkRef::encoded(BlobKey::Main, self.member.offset, self.member.stored, 0)
    }
}

impl Array for DeflatedArray {
    fn schema(&self) -> &ArraySchema {
        &self.schema
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn locate(&self, chunks: &[ChunkCoord]) -> Result<Vec<Option<ChunkRef>>> {
        Ok(chunks.iter().map(|_| Some(self.reference())).collect())
    }

    fn blob(&self, _: &BlobKey) -> Result<Arc<dyn Blob>> {
        Ok(Arc::clone(&self.blob))
    }

    fn decode(&self, _: &ChunkCoord, _: &ChunkRef, stored: &[Bytes], out: &mut [u8]) -> Result<()> {
        let stored = stored.first().map_or(&[][..], |stored| &stored[..]);
        let mut decoder = flate2::CrcReader::new(flate2::read::DeflateDecoder::new(stored));
        let place = Place::new(&self.name, "deflated data", self.member.offset);
        let read = io::copy(&mut (&mut decoder).take(self.header_length), &mut io::sink())
            .and_then(|_| decoder.read_exact(out))
            .and_then(|()| decoder.read(&mut [0]));
        match read {
            Ok(0) => {}
            Ok(_) => return Err(place.corrupt("it decodes to more bytes than the header says")),
            Err(error) => return Err(place.corrupt(error.to_string())),
        }
        compare_checksums(place, decoder.crc().sum(), self.member.checksum)?;
        if self.header.swapped {
            swap_elements(&self.schema.dtype, out);
        }
        Ok(())
    }

    fn visit_chunks(
        &self,
        visit: &mut dyn FnMut(ChunkCoord, ChunkRef) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        if self.schema.grid.chunks() == Some(1) {
            return visit(self.schema.grid.coord(0), self.reference()).map(|_| ());
        }
        Ok(())
    }
}
