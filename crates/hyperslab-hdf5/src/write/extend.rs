//! Adds links and attributes to existing objects.

use std::sync::Arc;

use bytes::Bytes;
use hyperslab_core::Result;

use super::edit::HeaderEdit;
use super::group::{dense_links, is_dense};
use super::index::{Patch, build_btree1_below};
use super::object::{MOST_ATTRIBUTES, MOST_COMPACT, NewMessage, Style, dense_attributes, shortened};
use super::output::Output;
use crate::encode::Encoder;
use crate::file::{File, FileFields};
use crate::group::Group;
use crate::header::{Header, Message, kind};
use crate::message::attribute::{Content, RawAttribute};
use crate::message::link::{Link, LinkTarget, StoredLink};
use crate::symbol_table::{SymbolEntry, SymbolTable};

/// The links and attributes to add to an existing object.
#[derive(Debug, Default)]
pub(crate) struct Additions {
    pub(crate) links: Vec<Link>,
    pub(crate) attributes: Vec<(String, Content)>,
}

/// Writes additions to the object at `address`. Returns the in-place changes that must follow.
pub(crate) fn extend(
    file: &Arc<File>,
    address: u64,
    added: Additions,
    output: &Output,
) -> Result<Vec<Patch>> {
    let header = Header::read(file, address)?;
    let mut edit = HeaderEdit::new(&header, output);
    let mut patches = Vec::new();
    if !added.links.is_empty() {
        patches = add_links(file, &header, added.links, &mut edit, output)?;
    }
    if !added.attributes.is_empty() {
        set_attributes(file, &header, &added.attributes, &mut edit, output)?;
    }
    patches.extend(edit.finish(file.sizes())?);
    Ok(patches)
}

fn add_links(
    file: &Arc<File>,
    header: &Header,
    new: Vec<Link>,
    edit: &mut HeaderEdit<'_>,
    output: &Output,
) -> Result<Vec<Patch>> {
    if let Some(message) = header.find(file, kind::SYMBOL_TABLE)? {
        return add_symbols(file, &message, &new, output);
    }
    let Some(info) = header.find(file, kind::LINK_INFO)? else {
        return Err(file.unsupported("adding to a group of an unusual form"));
    };
    let sizes = file.sizes();
    let mut fields = info.fields(file, "link info message");
    fields.version(&[0])?;
    let flags = fields.u8()?;
    let next = if flags & 1 != 0 { fields.i64()? } else { 0 };
    let at = fields.position();
    let heap = fields.address(sizes)?;
    let end = i64::try_from(new.len()).ok().and_then(|count| next.checked_add(count));
    let end = end
        .ok_or_else(|| info.fields(file, "link info message").place().corrupt("no numbers left for links"))?;
    let tracked = |(order, link): (i64, Link)| Link { order: (flags & 1 != 0).then_some(order), ..link };
    let new: Vec<Link> = (next..end).zip(new).map(tracked).collect();
    if flags & 1 != 0 {
        edit.set(&info, 2, &end.to_le_bytes())?;
    }
    let compact = header.all(kind::LINK).count();
    let new = new.iter().map(|link| StoredLink::new(link, sizes)).collect::<Result<Vec<_>>>()?;
    if heap.is_none() && compact + new.len() <= MOST_COMPACT && !is_dense(&new) {
        for link in new {
            edit.push(NewMessage::new(kind::LINK, 0, link.message));
        }
        return Ok(Vec::new());
    }
    // Write a new heap with all links; existing ones are copied verbatim.
    let mut all = Group::open(file, header.address)?.stored(file, header)?;
    all.extend(new);
    let [heap, names, orders] = dense_links(&all, sizes, output)?;
    let mut places = Encoder::new(sizes);
    places.address(Some(heap)).address(Some(names));
    if flags & 2 != 0 {
        places.address(Some(orders));
    }
    edit.set(&info, at, &places.finish()?)?;
    header.all(kind::LINK).try_for_each(|link| edit.forget(link))?;
    Ok(Vec::new())
}

/// Adds names to an old-style group. The names are copied to a new place, at the same offsets, with the new ones
/// after them. The tree is written anew, except that its root is replaced in place, like the header of the heap.
fn add_symbols(file: &Arc<File>, message: &Message, new: &[Link], output: &Output) -> Result<Vec<Patch>> {
    let sizes = file.sizes();
    let table = SymbolTable::parse(file, message)?;
    let (tree, heap) = table.places();
    let mut names = Encoder::new(sizes);
    names.put(table.names()).pad(0, 8);
    let mut entries = table.entries(file)?;
    for link in new {
        let LinkTarget::Hard(address) = link.target else {
            return Err(file.unsupported("adding a link to an old-style group"));
        };
        let at = names.len() as u64;
        names.put(link.name.as_bytes()).u8(0).pad(0, 8);
        let mut bytes = Encoder::new(sizes);
        bytes.length(at).address(Some(address)).zeros(24);
        entries.push(SymbolEntry { name: link.name.clone().into(), at, bytes: bytes.finish()? });
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    let (leaf, half) = file.superblock.halves;
    let (keys, children) = super::group::symbol_nodes(&entries, leaf, sizes, output)?;
    let root = build_btree1_below(0, usize::from(half), keys, children, sizes, output)?;
    let names = names.finish()?;
    let data = output.append(&names)?;
    let mut head = Encoder::magic(sizes, b"HEAP", 0);
    // The free blocks of the old heap are not described again; their space is lost.
    head.zeros(3).length(names.len() as u64).length(1).address(Some(data));
    Ok(vec![Patch { address: heap, bytes: head.finish()? }, Patch { address: tree, bytes: root }])
}

/// Sets attributes, replacing those of the same name.
fn set_attributes(
    file: &Arc<File>,
    header: &Header,
    new: &[(String, Content)],
    edit: &mut HeaderEdit<'_>,
    output: &Output,
) -> Result<()> {
    let old = crate::attributes::raw(file, header)?;
    let is_old = |name: &str| old.iter().any(|own| own.stored_name[..] == *name.as_bytes());
    let fresh = new.iter().filter(|(name, _)| !is_old(name)).count();
    let sizes = file.sizes();
    let style = if header.blocks.is_empty() { Style::Old } else { Style::New };
    let encoded: Vec<(&str, Vec<u8>)> = new
        .iter()
        .map(|(name, content)| Ok((name.as_str(), content.encode(name, style.types(), sizes)?)))
        .collect::<Result<_>>()?;
    let info = header.find(file, kind::ATTRIBUTE_INFO)?;
    let mut next = 0_u16;
    // If creation order is tracked, attributes are numbered in 16 bits.
    let number = |next: u16| {
        let end = u16::try_from(fresh).ok().and_then(|fresh| next.checked_add(fresh));
        end.ok_or_else(|| file.unsupported(format!("more than {MOST_ATTRIBUTES} attributes of one object")))
    };
    if let Some(info) = &info {
        let mut fields = info.fields(file, "attribute info message");
        fields.version(&[0])?;
        let flags = fields.u8()?;
        if flags & 1 != 0 {
            next = fields.u16()?;
            edit.set(info, 2, &number(next)?.to_le_bytes())?;
        }
        let at = fields.position();
        if fields.address(sizes)?.is_some() {
            let places = all_dense(file, header, &old, encoded, output)?;
            let count = if flags & 2 != 0 { 3 } else { 2 };
            let mut bytes = Encoder::new(sizes);
            for place in &places[..count] {
                bytes.address(Some(*place));
            }
            return edit.set(info, at, &bytes.finish()?);
        }
    }
    if let Some((name, message)) = encoded.iter().find(|(_, message)| message.len() > style.most_message()) {
        return Err(file.unsupported(format!(
            "adding attribute {:?} of {} bytes to an object that keeps its attributes in messages of at most {} bytes",
            shortened(name),
            message.len(),
            style.most_message()
        )));
    }
    if info.is_none() && header.ordered && fresh > 0 {
        let mut body = Encoder::new(sizes);
        body.u8(0).u8(1).u16(number(0)?).address(None).address(None);
        edit.push(NewMessage::new(kind::ATTRIBUTE_INFO, 4, body.finish()?));
    }
    for (name, body) in encoded {
        let message = NewMessage::new(kind::ATTRIBUTE, 0, body);
        match find_message(file, header, name)? {
            Some(old) => edit.exchange(old, NewMessage { order: old.order, ..message })?,
            None if is_old(name) => {
                return Err(file.unsupported(format!("replacing the attribute {name:?}, which is shared")));
            }
            None => {
                edit.push(NewMessage { order: next, ..message });
                next = next.saturating_add(1);
            }
        }
    }
    Ok(())
}

/// The message that holds the attribute with this name; `None` if there is none, or if it is shared.
fn find_message<'a>(file: &File, header: &'a Header, name: &str) -> Result<Option<&'a Message>> {
    for message in header.all(kind::ATTRIBUTE).filter(|message| message.flags & 2 == 0) {
        // An attribute that cannot be parsed matches no name.
        if RawAttribute::parse(file, message).is_ok_and(|own| own.stored_name[..] == *name.as_bytes()) {
            return Ok(Some(message));
        }
    }
    Ok(None)
}

/// Writes a new heap with all attributes of an object that keeps them in a heap, and the new ones.
fn all_dense(
    file: &Arc<File>,
    header: &Header,
    old: &[RawAttribute],
    new: Vec<(&str, Vec<u8>)>,
    output: &Output,
) -> Result<[u64; 3]> {
    let mut bodies = crate::attributes::dense_bodies(file, header)?;
    if bodies.len() != old.len() {
        return Err(file.unsupported("adding to attributes of which some cannot be read or are shared"));
    }
    for (name, body) in new {
        match bodies.iter_mut().find(|(own, _)| own[..] == *name.as_bytes()) {
            Some((_, own)) => *own = body,
            None => bodies.push((Bytes::copy_from_slice(name.as_bytes()), body)),
        }
    }
    let named: Vec<(&[u8], &[u8])> = bodies.iter().map(|(name, body)| (&name[..], &body[..])).collect();
    dense_attributes(&named, file.sizes(), output)
}

/// Refuses files whose bookkeeping we would break.
pub(crate) fn check_file(file: &Arc<File>) -> Result<()> {
    let Some(extension) = file.superblock.extension else { return Ok(()) };
    let header = Header::read(file, extension)?;
    if header.has(kind::CACHE_IMAGE) {
        return Err(file.unsupported("adding to a file with a metadata cache image"));
    }
    if header.has(kind::TREE_HALVES) {
        return Err(file.unsupported("adding to a file with B-trees of an unusual width"));
    }
    Ok(())
}
