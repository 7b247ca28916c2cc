//! Changes golden files and compares what our reader and the reference library make of them.
//!
//! Bytes are changed with the file's structure in view ([`mutate`]): checksums that cover them are computed again, documents
//! remain JSON, and structures are changed before they are compressed. Whatever one reader reads and the other refuses, and
//! every difference in values, is reported by class: what differs, and the reason that the refusing reader gave.

mod mutate;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use hyperslab::{DType, Node, OpenOptions, OpenStore, Selection, Values, open_with};
use hyperslab_codec::checksum::crc32;
use serde_json::Value;

use crate::random::Random;
use mutate::Golden;

/// The script that reads stores with the reference libraries.
const READER: &str = include_str!("differential.py");

/// Larger arrays are not read. The script has the same limit.
const MOST_BYTES: u64 = 1 << 24;

/// Options of a campaign.
#[derive(Debug, Clone)]
pub struct Campaign {
    /// The time after which no further store is changed.
    pub duration: Duration,
    /// The seed of random numbers.
    pub seed: u64,
    /// The interpreter that has the reference libraries.
    pub python: PathBuf,
    /// Only stores whose kind or path contains this.
    pub only: String,
    /// Where to keep one store of each class; `None` to keep none.
    pub keep: Option<PathBuf>,
}

/// The results of one kind of store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Changed stores.
    pub stores: u64,
    /// Stores that both readers read, with the same values.
    pub same: u64,
    /// Stores that both refuse, in whole or in the same nodes.
    pub refused: u64,
    /// Stores for which the process of the reference library ended: it crashed, or exceeded its limits.
    pub ended: u64,
    /// Differences by class, with their number.
    pub differences: BTreeMap<String, u64>,
}

impl Tally {
    /// The differences that are always errors of ours: a panic, and any difference in a store that was not changed. Two readers
    /// may find other values in a changed one, such as one with two chunks of the same coordinates.
    #[must_use]
    pub fn errors(&self) -> Vec<&str> {
        let is_error = |class: &&String| class.starts_with(UNCHANGED) || class.starts_with(PANIC);
        self.differences.keys().filter(is_error).map(String::as_str).collect()
    }
}

const UNCHANGED: &str = "unchanged store";

const OTHER_VALUES: &str = "other values";
const PANIC: &str = "panic";

/// What a reader makes of a node.
#[derive(Debug, Clone, PartialEq)]
enum Found {
    /// Numbers: shape, type and checksum.
    Numbers(Vec<u64>, String, u32),
    /// A number of rows.
    Rows(u64),
    /// Values that are not compared, or too many.
    Other,
    Refused(String),
}

/// The nodes of a store, or why it is refused.
type Contents = Result<BTreeMap<String, Found>, String>;

/// Runs a campaign. Returns a tally for each kind.
///
/// # Errors
///
/// If files cannot be read or written, or the reference libraries cannot be started.
pub fn run(campaign: &Campaign) -> Result<BTreeMap<&'static str, Tally>, String> {
    let to_text = |error: std::io::Error| error.to_string();
    let goldens: Vec<Golden> =
        mutate::goldens().into_iter().filter(|golden| golden.name().contains(&campaign.only)).collect();
    if goldens.is_empty() {
        return Err(format!("no store is named like {:?}", campaign.only));
    }
    let folder = tempfile::tempdir().map_err(to_text)?;
    let mut random = Random::new(campaign.seed);
    let mut reader: Option<Reference> = None;
    let mut tallies: BTreeMap<&'static str, Tally> = BTreeMap::new();
    let start = Instant::now();
    let mut unchanged = goldens.iter();
    loop {
        // Each golden store is compared as it is first.
        let next = unchanged.next();
        if next.is_none() && start.elapsed() >= campaign.duration {
            return Ok(tallies);
        }
        let golden = next.unwrap_or_else(|| &goldens[(random.number() % goldens.len() as u64) as usize]);
        let path = folder.path().join(format!("store.{}", golden.kind));
        golden.write_copy(&path).map_err(to_text)?;
        if next.is_none() {
            golden.change(&path, &mut random).map_err(to_text)?;
        }
        let tally = tallies.entry(golden.kind).or_default();
        tally.stores += 1;
        let ours = ours(&path);
        let asked = match reader.as_mut() {
            Some(reader) => reader,
            None => reader.insert(Reference::start(&campaign.python).map_err(to_text)?),
        };
        let classes = match (ours, asked.read(golden.kind, &path)) {
            (Err(panic), _) => vec![Difference { class: format!("{PANIC}: {panic}"), node: String::new() }],
            (Ok(_), None) => {
                tally.ended += 1;
                reader = None;
                Vec::new()
            }
            (Ok(ours), Some(theirs)) => {
                let classes = compare(&ours, &theirs);
                let is_refused = |contents: &Contents| match contents {
                    Ok(nodes) => nodes.values().any(|found| matches!(found, Found::Refused(_))),
                    Err(_) => true,
                };
                match classes.is_empty() {
                    true if is_refused(&theirs) => tally.refused += 1,
                    true => tally.same += 1,
                    false => {}
                }
                classes
            }
        };
        for class in classes {
            let Difference { mut class, node } = class;
            if next.is_some() {
                class = format!("{UNCHANGED}, {}: {class}", golden.name());
            }
            let count = tally.differences.entry(class.clone()).or_default();
            *count += 1;
            if let (1, Some(keep)) = (*count, &campaign.keep) {
                let kept = keep.join(format!("{:03}.{}", tally.differences.len(), golden.kind));
                keep_store(&path, &kept, &format!("{}\n{class}\n{node}\n", golden.name()))
                    .map_err(to_text)?;
            }
        }
    }
}

/// A difference between two readers: its class, and the first node of that class.
#[derive(Debug)]
struct Difference {
    class: String,
    node: String,
}

/// Copies a store for a closer look, with a description beside it.
fn keep_store(path: &Path, kept: &Path, about: &str) -> std::io::Result<()> {
    std::fs::create_dir_all(kept.parent().unwrap_or(Path::new(".")))?;
    mutate::copy(path, kept)?;
    std::fs::write(kept.with_added_extension("txt"), about)
}

/// The differences between two readers, one of each class.
fn compare(ours: &Contents, theirs: &Contents) -> Vec<Difference> {
    let mut found = BTreeMap::new();
    let mut add = |node: &str, class: String| {
        found.entry(class).or_insert_with(|| node.to_owned());
    };
    let reads =
        |nodes: &BTreeMap<String, Found>| nodes.values().any(|found| !matches!(found, Found::Refused(_)));
    match (ours, theirs) {
        (Ok(ours), Ok(theirs)) => compare_nodes(ours, theirs, &mut add),
        (Err(why), Ok(theirs)) if reads(theirs) => add("/", format!("we refuse the store: {}", general(why))),
        (Ok(ours), Err(why)) if reads(ours) => add("/", format!("they refuse the store: {}", general(why))),
        _ => {}
    }
    found.into_iter().map(|(class, node)| Difference { class, node }).collect()
}

fn compare_nodes(
    ours: &BTreeMap<String, Found>,
    theirs: &BTreeMap<String, Found>,
    add: &mut dyn FnMut(&str, String),
) {
    for (path, their) in theirs {
        match (ours.get(path), their) {
            (None | Some(Found::Refused(_)), Found::Refused(_)) => {}
            (None, _) => add(path, "we do not list a node".to_owned()),
            (Some(Found::Refused(why)), _) => add(path, format!("we refuse a node: {}", general(why))),
            (Some(_), Found::Refused(why)) => add(path, format!("they refuse a node: {}", general(why))),
            (Some(Found::Other), _) | (_, Found::Other) => {}
            (Some(own), their) if own == their => {}
            (Some(Found::Numbers(own, kind, _)), Found::Numbers(shape, their_kind, _)) => {
                let what = match (own == shape, kind == their_kind) {
                    (false, _) => "shape",
                    (_, false) => "type",
                    _ => "elements",
                };
                add(path, format!("{OTHER_VALUES}: {what}"));
            }
            (Some(_), _) => add(path, format!("{OTHER_VALUES}: rows")),
        }
    }
    for (path, own) in ours {
        if !theirs.contains_key(path) && !matches!(own, Found::Refused(_)) {
            add(path, "they do not list a node".to_owned());
        }
    }
}

/// A reason without paths, numbers and names, so that equal reasons are equal.
fn general(why: &str) -> String {
    let mut text = String::new();
    for word in why.split_whitespace() {
        let word = if word.contains('/') || word.contains("store.") { "…" } else { word };
        let mut last = '\0';
        for letter in word.chars() {
            let shown = if letter.is_ascii_digit() { '#' } else { letter };
            if shown != '#' || last != '#' {
                text.push(shown);
            }
            last = shown;
        }
        text.push(' ');
    }
    text.chars().take(160).collect::<String>().trim_end().to_owned()
}

/// What our reader makes of a store. The error is a panic.
fn ours(path: &Path) -> Result<Contents, String> {
    let read = || -> Contents {
        // Not mapped, because another program may change the file.
        let options = OpenOptions::default().with_mapped(false);
        let store = open_with(path, &options).map_err(|error| error.to_string())?;
        nodes(&store).map_err(|error| error.to_string())
    };
    catch_unwind(AssertUnwindSafe(read)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message").to_owned()
    })
}

fn nodes(store: &OpenStore) -> hyperslab::Result<BTreeMap<String, Found>> {
    let mut nodes = BTreeMap::new();
    store.walk(&mut |path, node| {
        let found = match node {
            Ok(Node::Array(array)) if array.schema().is_dimension => return Ok(()),
            Ok(Node::Array(array)) if array.schema().bytes().is_some_and(|bytes| bytes > MOST_BYTES) => {
                Ok(Found::Other)
            }
            Ok(Node::Array(array)) => {
                store.reader(array).read(&Selection::all()).map(|values| described(&values))
            }
            Ok(Node::Table(_)) if store.format() != "tiledb" => Ok(Found::Other),
            Ok(Node::Table(_)) => rows(store, path),
            Ok(_) => return Ok(()),
            Err(error) => Err(error),
        };
        nodes.insert(path.to_owned(), found.unwrap_or_else(|error| Found::Refused(error.to_string())));
        Ok(())
    })?;
    Ok(nodes)
}

fn rows(store: &OpenStore, path: &str) -> hyperslab::Result<Found> {
    let mut count = 0;
    for batch in store.table(path)?.rows(&Selection::all(), None)?.batches {
        count += batch?.rows as u64;
    }
    Ok(Found::Rows(count))
}

fn described(values: &Values) -> Found {
    let kind = match values.dtype {
        DType::Int8 => "i1",
        DType::Int16 => "i2",
        DType::Int32 => "i4",
        DType::Int64 => "i8",
        DType::UInt8 => "u1",
        DType::UInt16 => "u2",
        DType::UInt32 => "u4",
        DType::UInt64 => "u8",
        DType::Float16 => "f2",
        DType::Float32 => "f4",
        DType::Float64 => "f8",
        _ => return Found::Other,
    };
    let Some(bytes) = values.elements.as_fixed() else { return Found::Other };
    let mut bytes = bytes.to_vec();
    // Every NaN is the same value.
    match values.dtype {
        DType::Float16 => bytes.as_chunks_mut().0.iter_mut().for_each(|half: &mut [u8; 2]| {
            if u16::from_le_bytes(*half) & 0x7fff > 0x7c00 {
                *half = 0x7e00_u16.to_le_bytes();
            }
        }),
        DType::Float32 => bytes.as_chunks_mut().0.iter_mut().for_each(|single: &mut [u8; 4]| {
            if f32::from_le_bytes(*single).is_nan() {
                *single = f32::NAN.to_le_bytes();
            }
        }),
        DType::Float64 => bytes.as_chunks_mut().0.iter_mut().for_each(|double: &mut [u8; 8]| {
            if f64::from_le_bytes(*double).is_nan() {
                *double = f64::NAN.to_le_bytes();
            }
        }),
        _ => {}
    }
    Found::Numbers(values.shape.to_vec(), kind.to_owned(), crc32(&bytes))
}

/// The process that reads stores with their reference libraries. It ends when the handle is dropped.
#[derive(Debug)]
struct Reference {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Reference {
    fn start(python: &Path) -> std::io::Result<Self> {
        let mut command = Command::new(python);
        command.args(["-c", READER]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let gone = || std::io::Error::other("the process has no pipe");
        let input = child.stdin.take().ok_or_else(gone)?;
        let output = BufReader::new(child.stdout.take().ok_or_else(gone)?);
        Ok(Self { child, input, output })
    }

    /// What the library makes of a store; `None` if the process has ended.
    fn read(&mut self, kind: &str, path: &Path) -> Option<Contents> {
        writeln!(self.input, "{kind}\t{}", path.display()).and_then(|()| self.input.flush()).ok()?;
        let mut answer = String::new();
        if self.output.read_line(&mut answer).ok()? == 0 {
            return None;
        }
        let answer: Value = serde_json::from_str(&answer).ok()?;
        if let Some(why) = answer["refused"].as_str() {
            return Some(Err(why.to_owned()));
        }
        let nodes = answer["nodes"].as_object()?;
        Some(Ok(nodes.iter().map(|(path, node)| (path.clone(), found(node))).collect()))
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn found(node: &Value) -> Found {
    if let Some(why) = node["refused"].as_str() {
        return Found::Refused(why.to_owned());
    }
    if let Some(rows) = node["rows"].as_u64() {
        return Found::Rows(rows);
    }
    let numbers = || {
        let shape = node["shape"].as_array()?.iter().map(Value::as_u64).collect::<Option<_>>()?;
        Some(Found::Numbers(shape, node["type"].as_str()?.to_owned(), node["sum"].as_u64()? as u32))
    };
    numbers().unwrap_or(Found::Other)
}
