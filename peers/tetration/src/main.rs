//! Answers the tests' questions with the tetration crate. Every answer is JSON on standard output.
//!
//! ```text
//! peers-tetration dump FILE FOLDER      datasets and metadata; elements of dataset N as FOLDER/N.bin
//! peers-tetration verify FILE           the crate's own report
//! peers-tetration write SPEC            SPEC: {"path", "session", "datasets": [{"name", "dtype", "shape", "chunk_shape",
//!                                       "codec", "data", "attrs", "dim_names", "coords"}]}
//! peers-tetration append SPEC           the same, to an existing file
//! peers-tetration attr FILE DATASET KEY VALUE
//! ```

use std::error::Error;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tetration::catalog::{
    CHUNK_PAYLOAD_CODEC_V1, CoordAxisV1, RawArrayWrite, TetDatasetWrite, TetFileSummaryV1, TetWriterSession,
    read_tet_summary_v1, set_dataset_attrs, write_multi_raw_array_file,
};
use tetration::verify::{VerifyOptions, format_verify_json, verify_tet_file_with_options};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["dump", file, folder] => dump(Path::new(file), Path::new(folder)),
        ["verify", file] => {
            let mut options = VerifyOptions::default();
            options.deep_decode = true;
            let report = verify_tet_file_with_options(Path::new(file), options)?;
            println!("{}", format_verify_json(&report)?);
            Ok(())
        }
        ["write", spec] => write(&serde_json::from_str(&fs::read_to_string(spec)?)?, false),
        ["append", spec] => write(&serde_json::from_str(&fs::read_to_string(spec)?)?, true),
        ["attr", file, dataset, key, value] => {
            let clear: [&str; 0] = [];
            set_dataset_attrs(Path::new(file), dataset, &[(key, value)], &clear)?;
            Ok(())
        }
        _ => Err("dump FILE FOLDER | verify FILE | write SPEC | append SPEC | attr FILE DATASET KEY VALUE".into()),
    }
}

/// Everything in a file, read with the crate's parser and decoder.
fn dump(file: &Path, folder: &Path) -> Result<()> {
    let bytes = fs::read(file)?;
    let summary = read_tet_summary_v1(&bytes)?;
    let mut datasets = Vec::new();
    for (id, dataset) in summary.datasets.iter().enumerate() {
        fs::write(folder.join(format!("{id}.bin")), elements(&bytes, &summary, id)?)?;
        datasets.push(json!({
            "name": dataset.name, "dtype": dataset.dtype, "shape": dataset.shape, "chunk_shape": dataset.chunk_shape,
        }));
    }
    let history: Vec<Value> =
        summary.history.iter().map(|row| json!({"op": row.op, "source": row.source, "at": row.at})).collect();
    let metadata = serde_json::to_value(&summary.metadata)?;
    println!("{}", json!({"datasets": datasets, "history": history, "metadata": metadata}));
    Ok(())
}

/// The elements of a dataset in C order.
fn elements(bytes: &[u8], summary: &TetFileSummaryV1, id: usize) -> Result<Vec<u8>> {
    let dataset = &summary.datasets[id];
    let item = [0, 4, 8, 4, 8, 1, 2, 2, 4, 2, 8].get(dataset.dtype as usize).copied().ok_or("dtype")?;
    let cells: u64 = dataset.shape.iter().product();
    let mut out = vec![0xee; cells as usize * item];
    for chunk in summary.chunks.iter().filter(|chunk| chunk.dataset_id == id as u64) {
        let stored = &bytes[chunk.payload_offset as usize..][..chunk.stored_byte_len as usize];
        let raw = CHUNK_PAYLOAD_CODEC_V1.decode_tile_payload(
            stored,
            chunk.raw_byte_len,
            chunk.stored_byte_len,
            chunk.codec,
        )?;
        let rank = dataset.shape.len();
        let start: Vec<u64> = (0..rank).map(|d| chunk.chunk_index[d] * dataset.chunk_shape[d]).collect();
        let extent: Vec<u64> = (0..rank).map(|d| dataset.chunk_shape[d].min(dataset.shape[d] - start[d])).collect();
        for (cell, value) in raw.chunks_exact(item).enumerate() {
            let (mut left, mut at, mut stride) = (cell as u64, 0, 1);
            for d in (0..rank).rev() {
                at += (start[d] + left % extent[d]) * stride;
                left /= extent[d];
                stride *= dataset.shape[d];
            }
            out[at as usize * item..][..item].copy_from_slice(value);
        }
    }
    Ok(out)
}

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().into_iter().flatten().filter_map(Value::as_u64).collect()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The datasets of a specification.
fn datasets(spec: &Value) -> Result<Vec<TetDatasetWrite>> {
    let mut datasets = Vec::new();
    for own in spec["datasets"].as_array().into_iter().flatten() {
        let data = fs::read(own["data"].as_str().ok_or("data")?)?;
        let mut dataset = TetDatasetWrite::row_major(
            own["name"].as_str().ok_or("name")?,
            own["dtype"].as_u64().ok_or("dtype")? as u32,
            &numbers(&own["shape"]),
            &numbers(&own["chunk_shape"]),
            data,
        )?;
        dataset.chunk_codec = own["codec"].as_u64().unwrap_or(0) as u32;
        for (key, value) in own["attrs"].as_object().into_iter().flatten() {
            dataset.attrs.insert(key.clone(), value.as_str().unwrap_or_default().to_owned());
        }
        dataset.dim_names = own["dim_names"].as_array().map(|_| texts(&own["dim_names"]));
        dataset.coords = own["coords"].as_object().map(|coords| {
            coords.iter().map(|(key, labels)| (key.clone(), CoordAxisV1 { labels: texts(labels) })).collect()
        });
        datasets.push(dataset);
    }
    Ok(datasets)
}

fn write(spec: &Value, append: bool) -> Result<()> {
    let path = spec["path"].as_str().ok_or("path")?;
    let datasets = datasets(spec)?;
    if spec["session"] == json!(false) {
        let arrays: Vec<_> = datasets
            .iter()
            .map(|own| RawArrayWrite {
                name: &own.name,
                dtype: own.dtype,
                shape: &own.shape,
                chunk_shape: &own.chunk_shape,
                chunk_codec: own.chunk_codec,
                data: &own.data,
                file_execution: None,
            })
            .collect();
        write_multi_raw_array_file(Path::new(path), &arrays)?;
        return Ok(());
    }
    let mut session =
        if append { TetWriterSession::open_append(path)? } else { TetWriterSession::create(path) };
    session.push_history_event("write", path);
    for dataset in datasets {
        session.push_dataset(dataset)?;
    }
    session.commit()?;
    Ok(())
}
