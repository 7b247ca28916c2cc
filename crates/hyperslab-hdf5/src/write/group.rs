//! Groups that are being written: links in the header, in a heap, or in an old-style symbol table.

use hyperslab_codec::checksum::lookup3;
use hyperslab_core::{Error, Result};

use super::fractal::{self, LINKS};
use super::index::build_btree1;
use super::object::{CONSTANT, MOST_COMPACT, NewHeader, NewMessage, Style, tree};
use super::output::Output;
use crate::encode::Encoder;
use crate::file::Sizes;
use crate::header::kind;
use crate::message::link::{Link, LinkTarget};
use crate::symbols::{LEAF_K, TREE_K};

/// Adds the messages that make a group of these links. `write` says whether what stands outside the header is written, or
/// only the header's size is wanted. Answers an old-style group's tree and heap.
pub(crate) fn links(
    header: &mut NewHeader,
    links: &[Link],
    sizes: Sizes,
    write: Option<&Output>,
) -> Result<Option<(u64, u64)>> {
    if header.style == Style::Old {
        let (tree, heap) = match write {
            Some(output) => symbols(links, sizes, output)?,
            None => (0, 0),
        };
        let mut body = Encoder::new(sizes);
        body.address(Some(tree)).address(Some(heap));
        header.messages.push(NewMessage::new(kind::SYMBOL_TABLE, 0, body.bytes));
        return Ok(Some((tree, heap)));
    }
    let dense = links.len() > MOST_COMPACT;
    let places = match write.filter(|_| dense) {
        Some(output) => dense_links(links, sizes, output)?.map(Some),
        None => [None; 3],
    };
    let mut info = Encoder::new(sizes);
    // The order of creation is kept and indexed; the next link has this number.
    let next = links.iter().filter_map(|link| link.order).max().map_or(0, |order| order + 1);
    info.u8(0).u8(3).put(&next.to_le_bytes());
    places.iter().for_each(|place| {
        info.address(*place);
    });
    header.messages.push(NewMessage::new(kind::LINK_INFO, 0, info.bytes));
    header.messages.push(NewMessage::new(kind::GROUP_INFO, CONSTANT, vec![0, 0]));
    if !dense {
        let messages = links.iter().map(|link| NewMessage::new(kind::LINK, 0, link.encode(sizes)));
        header.messages.extend(messages);
    }
    Ok(None)
}

/// Links in a heap, with trees by name and by order; answers where the three are.
fn dense_links(links: &[Link], sizes: Sizes, output: &Output) -> Result<[u64; 3]> {
    let encoded: Vec<_> = links.iter().map(|link| link.encode(sizes)).collect();
    let (heap, ids) = fractal::build(&encoded, LINKS, sizes, output)?;
    let mut named: Vec<(u32, &str, usize)> = links
        .iter()
        .enumerate()
        .map(|(index, link)| (lookup3(link.name.as_bytes(), 0), link.name.as_str(), index))
        .collect();
    named.sort_unstable();
    let mut records = Encoder::new(sizes);
    named.iter().for_each(|(hash, _, index)| {
        records.u32(*hash).put(&ids[*index]);
    });
    let names = tree(5, 11, &records.bytes, sizes, output)?;
    let mut ordered: Vec<(i64, usize)> =
        links.iter().enumerate().map(|(index, link)| (link.order.unwrap_or(0), index)).collect();
    ordered.sort_unstable();
    let mut records = Encoder::new(sizes);
    ordered.iter().for_each(|(order, index)| {
        records.put(&order.to_le_bytes()).put(&ids[*index]);
    });
    let orders = tree(6, 15, &records.bytes, sizes, output)?;
    Ok([heap, names, orders])
}

/// An old-style group: names in a local heap, symbol nodes by name, a tree of them. Answers tree and heap.
fn symbols(links: &[Link], sizes: Sizes, output: &Output) -> Result<(u64, u64)> {
    let mut sorted: Vec<&Link> = links.iter().collect();
    sorted.sort_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
    // The heap starts with the empty name.
    let mut names = Encoder::new(sizes);
    names.zeros(8);
    let mut keep = |name: &str| {
        let at = names.bytes.len();
        names.put(name.as_bytes()).u8(0).pad(0, 8);
        at as u64
    };
    let mut entries = Vec::with_capacity(sorted.len());
    for link in &sorted {
        let name = keep(&link.name);
        let mut entry = Encoder::new(sizes);
        entry.length(name);
        match &link.target {
            LinkTarget::Hard(address) => {
                entry.address(Some(*address)).zeros(24);
            }
            LinkTarget::Soft(path) => {
                let at = keep(path);
                entry.address(None).u32(2).u32(0).u32(at as u32).zeros(12);
            }
            _ => {
                return Err(Error::invalid(format!(
                    "an old-style group cannot hold the link {:?}",
                    link.name
                )));
            }
        }
        entries.push((name, entry.bytes));
    }
    let each = 2 * usize::from(LEAF_K);
    let room = entries.first().map_or(0, |(_, entry)| entry.len()) * each;
    let (mut keys, mut children) = (vec![0_u64.to_le_bytes()[..sizes.length].to_vec()], Vec::new());
    for part in entries.chunks(each) {
        let mut node = Encoder::magic(sizes, b"SNOD", 1);
        node.u8(0).u16(part.len() as u16);
        part.iter().for_each(|(_, entry)| {
            node.put(entry);
        });
        // Room for as many entries as a node may have.
        node.bytes.resize(8 + room, 0);
        children.push(output.append(&node.bytes)?);
        // The key behind a node is its greatest name.
        keys.push(part.last().map_or(0, |(name, _)| *name).to_le_bytes()[..sizes.length].to_vec());
    }
    let tree = build_btree1(0, usize::from(TREE_K), keys, children, sizes, output)?;
    let data = output.append(&names.bytes)?;
    let mut heap = Encoder::magic(sizes, b"HEAP", 0);
    // No free blocks, which libhdf5 says with a 1.
    heap.zeros(3).length(names.bytes.len() as u64).length(1).address(Some(data));
    Ok((tree, output.append(&heap.bytes)?))
}
