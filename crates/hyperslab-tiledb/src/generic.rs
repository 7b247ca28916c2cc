//! Generic tiles: the container for every structure except cell data.
//!
//! A generic tile is a 34-byte header, a pipeline and a tile. Schemas, lists of tile offsets, R-trees and metadata
//! each use one.

use bytes::Bytes;
use hyperslab_core::{Blob, Fields, Place, Result};

use crate::datatype::Datatype;
use crate::key::Key;
use crate::pipeline::{Filter, Pipeline};
use crate::tile::{TileCodec, no_key, not_encrypted};

/// The size of the header in bytes.
const HEADER: usize = 34;

struct Header {
    version: u32,
    persisted: u64,
    size: u64,
    datatype: Datatype,
    cell: u64,
    encrypted: bool,
    pipeline: u32,
}

impl Header {
    fn parse(fields: &mut Fields<'_>) -> Result<Self> {
        let (version, persisted, size) = (fields.u32()?, fields.u64()?, fields.u64()?);
        let place = fields.place();
        let datatype = Datatype::parse(fields.u8()?, place)?;
        let cell = fields.u64()?;
        let place = fields.place();
        let encrypted = match fields.u8()? {
            0 => false,
            1 => true,
            other => return Err(place.corrupt(format!("encryption {other}, expected 0 or 1"))),
        };
        Ok(Self { version, persisted, size, datatype, cell, encrypted, pipeline: fields.u32()? })
    }
}

/// Decodes the generic tile at the start of `bytes`. Returns its payload and its size.
pub(crate) fn decode(bytes: &[u8], key: Option<&Key>, place: Place<'_>) -> Result<(Vec<u8>, usize)> {
    let mut fields = Fields::new(bytes, place);
    let header = Header::parse(&mut fields)?;
    let mut pipeline_fields = Fields::new(fields.bytes(header.pipeline as usize)?, fields.place());
    let pipeline = Pipeline::parse(&mut pipeline_fields)?;
    match (header.encrypted, key) {
        (true, None) => return Err(no_key(place)),
        // Like the library: with a key, reject plain data, because anyone without the key could have written it.
        (false, Some(_)) => return Err(not_encrypted(place)),
        _ => {}
    }
    let persisted = usize::try_from(header.persisted).unwrap_or(usize::MAX);
    let size = usize::try_from(header.size).unwrap_or(usize::MAX);
    let (tile_place, tile) = (fields.place(), fields.bytes(persisted)?);
    let cell = usize::try_from(header.cell).unwrap_or(1).max(1);
    let codec = TileCodec::new(&pipeline, header.datatype, cell, false, header.version, key);
    let payload = codec.decode_tile(tile, size, tile_place)?;
    Ok((crate::fuzz::patched(payload), fields.position()))
}

/// Decodes a blob that is exactly one generic tile.
pub(crate) fn decode_whole(bytes: &[u8], key: Option<&Key>, place: Place<'_>) -> Result<Vec<u8>> {
    decode(bytes, key, place).map(|(payload, _)| payload)
}

/// Decodes the generic tile at `offset` of a blob.
pub(crate) fn read(
    blob: &dyn Blob,
    offset: u64,
    key: Option<&Key>,
    structure: &'static str,
) -> Result<Vec<u8>> {
    let place = Place::new(blob.name(), structure, offset);
    let head = blob.read_at(offset, HEADER as u64)?;
    let header = Header::parse(&mut Fields::new(&head, place))?;
    let length = header.persisted.checked_add(HEADER as u64 + u64::from(header.pipeline));
    let length = length.ok_or_else(|| place.corrupt("a length past 2^64"))?;
    let bytes: Bytes = blob.read_at(offset, length)?;
    decode_whole(&bytes, key, place)
}

/// Encodes a payload as a generic tile, with this format version in its header.
pub(crate) fn encode(payload: &[u8], version: u32, key: Option<&Key>) -> Result<Vec<u8>> {
    let mut pipeline = Pipeline::of([Filter::Gzip(1)]);
    if key.is_some() {
        pipeline.filters.push(Filter::Aes256Gcm);
    }
    let codec = TileCodec::new(&pipeline, Datatype::Char, 1, false, version, key);
    let tile = codec.encode_tile(payload)?;
    let mut coded_pipeline = Vec::new();
    pipeline.encode(&mut coded_pipeline);
    let mut out = Vec::with_capacity(HEADER + coded_pipeline.len() + tile.len());
    out.extend(version.to_le_bytes());
    out.extend((tile.len() as u64).to_le_bytes());
    out.extend((payload.len() as u64).to_le_bytes());
    out.push(Datatype::Char.code());
    out.extend(1_u64.to_le_bytes());
    out.push(u8::from(key.is_some()));
    out.extend((coded_pipeline.len() as u32).to_le_bytes());
    out.extend(coded_pipeline);
    out.extend(tile);
    Ok(out)
}
