//! `tet hash`: a content hash, equal for equal values.

use hyperslab::Result;
use hyperslab::hash;
use serde_json::json;

use crate::args::HashArgs;
use crate::{Answer, output, paint};

pub(crate) fn run(args: &HashArgs) -> Result<Answer> {
    let store = super::open(&args.open)?;
    let root = args.node.as_deref().unwrap_or("/");
    let nodes = hash::nodes(&store, root)?;
    let all = hash::together(&nodes);
    if args.json {
        let nodes: Vec<_> = nodes
            .iter()
            .map(|(path, hash)| json!({ "path": path, "hash": hash.to_hex().as_str() }))
            .collect();
        output::print_json(&json!({
            "path": hyperslab::location_name(&args.open.path), "hash": all.to_hex().as_str(), "nodes": nodes,
        }))?;
        return Ok(Answer::Yes);
    }
    output::print(|out| {
        if nodes.len() != 1 {
            for (path, hash) in &nodes {
                writeln!(out, "{}  {}", paint::dim(hash.to_hex()), path)?;
            }
        }
        writeln!(out, "{}  {}", all.to_hex(), hyperslab::location_name(&args.open.path))
    })?;
    Ok(Answer::Yes)
}
