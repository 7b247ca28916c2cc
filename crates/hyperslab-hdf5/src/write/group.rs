//! Writes groups: links in the header, in a heap, or in an old-style symbol table.

use hyperslab_codec::checksum::lookup3;
use hyperslab_core::{CreationOrder, Error, Result};

use super::fractal::{self, LINKS};
use super::index::build_btree1;
use super::object::{CONSTANT, MOST_COMPACT, NewHeader, NewMessage, Style, order_flags, tree};
use super::output::Output;
use crate::encode::Encoder;
use crate::file::Sizes;
use crate::header::kind;
use crate::message::link::{Link, LinkTarget, StoredLink};
use crate::symbol_table::{LEAF_K, SymbolEntry, TREE_K};

/// Adds the messages of a group with these links. If `write` is false, data outside the header is not written, because only
/// the header's size is wanted. Returns an old-style group's tree and heap.
pub(crate) fn links(
    header: &mut NewHeader,
    links: &[Link],
    order: CreationOrder,
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
        header.messages.push(NewMessage::new(kind::SYMBOL_TABLE, 0, body.finish()?));
        return Ok(Some((tree, heap)));
    }
    // A link too large for a message goes to the heap, whose objects may have any size.
    let stored = links.iter().map(|link| StoredLink::new(link, sizes)).collect::<Result<Vec<_>>>()?;
    let dense = is_dense(&stored);
    let places = match write.filter(|_| dense) {
        Some(output) => dense_links(&stored, sizes, output)?.map(Some),
        None => [None; 3],
    };
    let mut info = Encoder::new(sizes);
    info.u8(0).u8(order_flags(order));
    if order != CreationOrder::Untracked {
        // The next link has this number.
        let next = links.iter().filter_map(|link| link.order).max().map_or(0, |order| order + 1);
        info.put(&next.to_le_bytes());
    }
    let [heap, names, orders] = places;
    info.address(heap).address(names);
    if order == CreationOrder::Indexed {
        info.address(orders);
    }
    header.messages.push(NewMessage::new(kind::LINK_INFO, 0, info.finish()?));
    header.messages.push(NewMessage::new(kind::GROUP_INFO, CONSTANT, vec![0, 0]));
    if !dense {
        let bodies = stored.into_iter().map(|link| link.message);
        header.messages.extend(bodies.map(|body| NewMessage::new(kind::LINK, 0, body)));
    }
    Ok(None)
}

/// Returns true if these links go to a heap: if there are many, or one is too large for a message.
pub(crate) fn is_dense(links: &[StoredLink]) -> bool {
    links.len() > MOST_COMPACT || links.iter().any(|link| link.message.len() > Style::New.most_message())
}

/// Writes links to a heap, with trees by name and by order. Returns their three addresses.
pub(crate) fn dense_links(links: &[StoredLink], sizes: Sizes, output: &Output) -> Result<[u64; 3]> {
    let messages: Vec<&[u8]> = links.iter().map(|link| &link.message[..]).collect();
    let (heap, ids) = fractal::build(&messages, LINKS, sizes, output)?;
    let mut named: Vec<(u32, &[u8], usize)> = links
        .iter()
        .enumerate()
        .map(|(index, link)| (lookup3(&link.name, 0), &link.name[..], index))
        .collect();
    named.sort_unstable();
    let mut records = Encoder::new(sizes);
    named.iter().for_each(|(hash, _, index)| {
        records.u32(*hash).put(&ids[*index]);
    });
    let names = tree(5, 11, &records.finish()?, sizes, output)?;
    let mut ordered: Vec<(i64, usize)> =
        links.iter().enumerate().map(|(index, link)| (link.order.unwrap_or(0), index)).collect();
    ordered.sort_unstable();
    let mut records = Encoder::new(sizes);
    ordered.iter().for_each(|(order, index)| {
        records.put(&order.to_le_bytes()).put(&ids[*index]);
    });
    let orders = tree(6, 15, &records.finish()?, sizes, output)?;
    Ok([heap, names, orders])
}

/// Writes an old-style group: names in a local heap, symbol nodes sorted by name, and a tree of those. Returns tree and heap.
fn symbols(links: &[Link], sizes: Sizes, output: &Output) -> Result<(u64, u64)> {
    let mut sorted: Vec<&Link> = links.iter().collect();
    sorted.sort_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
    // The heap starts with the empty name.
    let mut names = Encoder::new(sizes);
    names.zeros(8);
    let mut keep = |name: &str| {
        let at = names.len();
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
                entry
                    .address(None)
                    .u32(2)
                    .u32(0)
                    .count(at, 4, "bytes of an old-style group's names")
                    .zeros(12);
            }
            _ => {
                return Err(Error::invalid(format!(
                    "an old-style group cannot hold the link {:?}",
                    link.name
                )));
            }
        }
        entries.push(SymbolEntry { name: link.name.clone().into(), at: name, bytes: entry.finish()? });
    }
    let (keys, children) = symbol_nodes(&entries, LEAF_K, sizes, output)?;
    let tree = build_btree1(0, usize::from(TREE_K), keys, children, sizes, output)?;
    let names = names.finish()?;
    let data = output.append(&names)?;
    let mut heap = Encoder::magic(sizes, b"HEAP", 0);
    // No free blocks, which libhdf5 encodes as 1.
    heap.zeros(3).length(names.len() as u64).length(1).address(Some(data));
    Ok((tree, output.append(&heap.finish()?)?))
}

/// Writes the nodes of these entries, which are sorted by name. Returns the tree's keys and children.
pub(crate) fn symbol_nodes(
    entries: &[SymbolEntry],
    half: u16,
    sizes: Sizes,
    output: &Output,
) -> Result<(Vec<Vec<u8>>, Vec<u64>)> {
    let each = 2 * usize::from(half);
    let room = (sizes.length + sizes.address + 24) * each;
    let key = |at: u64| at.to_le_bytes()[..sizes.length].to_vec();
    let (mut keys, mut children) = (vec![key(0)], Vec::new());
    for part in entries.chunks(each) {
        let mut node = Encoder::magic(sizes, b"SNOD", 1);
        node.u8(0).count(part.len(), 2, "entries of a symbol table node");
        for entry in part {
            node.put(&entry.bytes);
        }
        // Reserve the maximum number of entries of a node.
        node.fill(8 + room);
        children.push(output.append(&node.finish()?)?);
        // The key after a node is its greatest name.
        keys.push(key(part.last().map_or(0, |entry| entry.at)));
    }
    Ok((keys, children))
}
