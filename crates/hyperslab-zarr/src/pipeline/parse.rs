//! Parses pipelines from v3 metadata.

use hyperslab_core::{DType, Extents, Result};
use serde_json::{Map, Value};

use super::{MAX_DEPTH, Pipeline, Serializer, Sharding, compose, permuted};
use crate::codec::{self, Step, Subject};
use crate::dtype::{StoredType, Swap, all_swaps};
use crate::json::Doc;

impl Pipeline {
    /// The codecs of a v3 document, for chunks of this shape.
    pub(crate) fn parse_v3(codecs: &Value, stored: &StoredType, shape: &[u64], doc: Doc<'_>) -> Result<Self> {
        Self::parse_at(codecs, stored, shape, doc, 0)
    }

    pub(super) fn parse_at(
        codecs: &Value,
        stored: &StoredType,
        shape: &[u64],
        doc: Doc<'_>,
        depth: usize,
    ) -> Result<Self> {
        let none = Map::new();
        let (dtype, rank) = (&stored.dtype, shape.len());
        let (mut pipeline, mut serializer) = (Self::new(), None);
        // The shape of the next codec's input, and whether it still is that of the chunk.
        let (mut shape, mut reshaped) = (Extents::from_slice(shape), false);
        for codec in doc.list(codecs, "codecs")? {
            let (name, configuration) = match codec {
                Value::String(name) => (name.as_str(), &none),
                other => {
                    let object = doc.object(other, "a codec")?;
                    let configuration = match object.get("configuration") {
                        None | Some(Value::Null) => &none,
                        Some(configuration) => doc.object(configuration, "a codec's configuration")?,
                    };
                    (doc.text(doc.field(object, "name")?, "a codec's name")?, configuration)
                }
            };
            let fixed = dtype.is_fixed();
            match (name, codec::short_name(name), &serializer) {
                ("transpose" | "sharding_indexed", ..) if reshaped => {
                    return Err(doc.unsupported(format!("codec {name:?} after a change of shape")));
                }
                ("transpose", _, None) => {
                    if !pipeline.steps.is_empty() {
                        return Err(doc.unsupported("a transpose after a filter of numbers"));
                    }
                    let order = transpose_order(configuration, rank, doc)?;
                    pipeline.axes = compose(&pipeline.axes, &order);
                    shape = permuted(&order, &shape);
                }
                // Cells keep their order, and no later codec but zfp uses the shape.
                (_, "squeeze", None) => {
                    shape.retain(|extent| *extent != 1);
                    reshaped = true;
                }
                ("bytes" | "endian", _, None) if fixed => {
                    let swaps = bytes_swaps(configuration, stored, doc)?;
                    if !swaps.is_empty() && !pipeline.steps.is_empty() {
                        return Err(doc.unsupported("filters of numbers in the other byte order"));
                    }
                    // Narrow numbers are swapped as they are widened.
                    let big = !swaps.is_empty() && cfg!(target_endian = "little");
                    if let Some(kind) = stored.narrow {
                        pipeline.steps.insert(0, Step::Narrow { kind, big });
                        serializer = Some(Serializer::Bytes { swaps: Vec::new() });
                    } else {
                        serializer = Some(Serializer::Bytes { swaps });
                    }
                }
                (_, "vlen-utf8", None) if *dtype == DType::String => serializer = Some(Serializer::Variable),
                (_, "vlen-bytes", None) if *dtype == DType::Bytes => serializer = Some(Serializer::Variable),
                ("sharding_indexed", _, None) => {
                    if depth >= MAX_DEPTH {
                        return Err(doc.corrupt("shards nested too deeply"));
                    }
                    let sharding = Sharding::parse(configuration, stored, rank, doc, depth + 1)?;
                    serializer = Some(Serializer::Shard(Box::new(sharding)));
                }
                ("bytes" | "endian" | "sharding_indexed" | "transpose", ..)
                | (_, "vlen-utf8" | "vlen-bytes" | "squeeze", _) => {
                    return Err(
                        doc.corrupt(format!("codec {name:?} cannot occur at this position for {dtype}"))
                    );
                }
                (name, _, own) => {
                    let item = stored.size().unwrap_or(1);
                    let subject = Subject { item, dtype, narrow: stored.narrow, shape: &shape };
                    let step = codec::parse_v3(name, configuration, subject, doc)?;
                    let before = step.is_serializer() || step.is_array_to_array();
                    if before != own.is_none() || (before && !fixed) {
                        return Err(doc.corrupt(format!("codec {name:?} cannot occur at this position")));
                    }
                    if step.is_serializer() {
                        serializer = Some(Serializer::Bytes { swaps: Vec::new() });
                        let narrow = stored.narrow.map(|kind| Step::Narrow { kind, big: false });
                        pipeline.steps.splice(0..0, narrow);
                    }
                    pipeline.steps.push(step);
                }
            }
        }
        pipeline.serializer = serializer.ok_or_else(|| doc.corrupt("no codec turns the array into bytes"))?;
        Ok(pipeline)
    }
}

fn transpose_order(configuration: &Map<String, Value>, rank: usize, doc: Doc<'_>) -> Result<Vec<u8>> {
    let order = doc.field(configuration, "order")?;
    let axes: Option<Vec<u8>> = match order {
        Value::String(name) if name == "C" => Some((0..rank as u8).collect()),
        Value::String(name) if name == "F" => Some((0..rank as u8).rev().collect()),
        Value::Array(axes) => {
            axes.iter().map(|axis| axis.as_u64().and_then(|axis| u8::try_from(axis).ok())).collect()
        }
        _ => None,
    };
    let mut sorted = axes.clone().unwrap_or_default();
    sorted.sort_unstable();
    match axes {
        Some(axes) if sorted.iter().copied().eq(0..rank as u8) => Ok(axes),
        _ => Err(doc.corrupt(format!("transpose order {order} of {rank} dimensions"))),
    }
}

fn bytes_swaps(configuration: &Map<String, Value>, stored: &StoredType, doc: Doc<'_>) -> Result<Vec<Swap>> {
    let big = match configuration.get("endian") {
        None | Some(Value::Null) => cfg!(target_endian = "big"),
        Some(Value::String(order)) if order == "little" => false,
        Some(Value::String(order)) if order == "big" => true,
        Some(other) => return Err(doc.corrupt(format!("endian is {other}"))),
    };
    Ok(if big == cfg!(target_endian = "big") { Vec::new() } else { all_swaps(&stored.dtype) })
}
