//! Groups: links to objects, in the old and the new form.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use bytes::Bytes;
use hyperslab_codec::checksum::lookup3;
use hyperslab_core::{Fields, Place, Result};
use smallvec::SmallVec;

use crate::btree2::BTree2;
use crate::file::{File, FileFields};
use crate::header::{Header, ObjectKind, kind};
use crate::heap::fractal::FractalHeap;
use crate::message::link::{Link, LinkTarget, StoredLink};
use crate::symbol_table::SymbolTable;

/// An open group.
#[derive(Debug)]
pub(crate) struct Group {
    links: Links,
}

#[derive(Debug)]
enum Links {
    /// The old form: a B-tree of symbol nodes, names in a local heap.
    Symbols(SymbolTable),
    /// Link messages in the header.
    Compact(Vec<Link>),
    /// Link messages in a fractal heap, found by a B-tree of name hashes.
    Dense(Box<Dense>),
}

#[derive(Debug)]
struct Dense {
    heap: FractalHeap,
    names: BTree2,
    /// Whether creation order is tracked.
    ordered: bool,
}

impl Group {
    pub(crate) fn open(file: &File, address: u64) -> Result<Self> {
        let header = Header::read(file, address)?;
        if header.kind(file)? != ObjectKind::Group {
            return Err(file.place("object header", address).corrupt("not a group"));
        }
        let links = Self::links(file, &header)?;
        Ok(Self { links })
    }

    fn links(file: &File, header: &Header) -> Result<Links> {
        if let Some(message) = header.find(file, kind::SYMBOL_TABLE)? {
            return Ok(Links::Symbols(SymbolTable::parse(file, &message)?));
        }
        if let Some(message) = header.find(file, kind::LINK_INFO)? {
            let mut fields = message.fields(file, "link info message");
            fields.version(&[0])?;
            let flags = fields.u8()?;
            if flags & 1 != 0 {
                fields.skip(8)?;
            }
            if let Some(heap) = fields.address(file.sizes())? {
                let names = fields.defined(file.sizes())?;
                return Ok(Links::Dense(Box::new(Dense {
                    heap: FractalHeap::read(file, heap)?,
                    names: BTree2::read(file, names)?,
                    ordered: flags & 1 != 0,
                })));
            }
        }
        let links = header.all(kind::LINK).map(|message| {
            let message = header.resolve(file, message)?;
            Link::parse(&mut message.fields(file, "link message"), file.sizes())
        });
        let mut links = links.collect::<Result<Vec<_>>>()?;
        sort(&mut links);
        Ok(Links::Compact(links))
    }

    /// The approximate size in memory.
    pub(crate) fn bytes(&self) -> u64 {
        match &self.links {
            Links::Symbols(table) => table.names().len() as u64,
            Links::Compact(links) => {
                links.iter().map(|link| (size_of::<Link>() + 2 * link.name.len()) as u64).sum()
            }
            Links::Dense(_) => 1 << 10,
        }
    }

    /// All links: in creation order if it is tracked, else by name.
    pub(crate) fn all(&self, file: &File) -> Result<Vec<Link>> {
        match &self.links {
            Links::Symbols(table) => table.all(file),
            Links::Compact(links) => Ok(links.clone()),
            Links::Dense(dense) => dense.all(file),
        }
    }

    /// All links as stored, in arbitrary order, for a group in the new form.
    pub(crate) fn stored(&self, file: &File, header: &Header) -> Result<Vec<StoredLink>> {
        let sizes = file.sizes();
        let mut stored = Vec::new();
        match &self.links {
            Links::Symbols(_) => return Err(file.unsupported("links of an old-style group as messages")),
            Links::Compact(_) => {
                for message in header.all(kind::LINK) {
                    let message = header.resolve(file, message)?;
                    let place = file.place("link message", message.address);
                    stored.push(StoredLink::parse(&message.body, place, sizes)?);
                }
            }
            Links::Dense(dense) => dense.visit_stored(file, &mut |bytes, place| {
                stored.push(StoredLink::parse(bytes, place, sizes)?);
                Ok(())
            })?,
        }
        Ok(stored)
    }

    /// Only the names, in the same order: 100,000 names sort faster without their targets.
    pub(crate) fn names(&self, file: &File) -> Result<Vec<String>> {
        match &self.links {
            Links::Dense(dense) => dense.names(file),
            _ => Ok(self.all(file)?.into_iter().map(|link| link.name).collect()),
        }
    }

    /// The link of this name.
    pub(crate) fn find(&self, file: &File, name: &str) -> Result<Option<Link>> {
        let found = match &self.links {
            Links::Symbols(table) => table.find(file, name)?,
            Links::Compact(links) => links.iter().find(|link| link.name == name).cloned(),
            Links::Dense(dense) => dense.find(file, name)?,
        };
        // A name that is not UTF-8 is listed with replacement characters, which no tree contains.
        if found.is_none() && name.contains(char::REPLACEMENT_CHARACTER) {
            return Ok(self.all(file)?.into_iter().find(|link| link.name == name));
        }
        Ok(found)
    }
}

fn sort(links: &mut [Link]) {
    if links.iter().all(|link| link.order.is_some()) {
        links.sort_by_key(|link| link.order);
    } else {
        links.sort_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
    }
}

/// Called for a stored link: its message, and the message's address.
type VisitStored<'a> = &'a mut dyn FnMut(&[u8], Place<'_>) -> Result<()>;

impl Dense {
    fn message(&self, file: &File, id: &[u8]) -> Result<(Bytes, u64)> {
        let (bytes, address) = self.heap.object(file, id)?;
        file.allocate(bytes.len() as u64, "link message")?;
        Ok((bytes, address))
    }

    fn link(&self, file: &File, id: &[u8]) -> Result<Link> {
        let (bytes, address) = self.message(file, id)?;
        Link::parse(&mut Fields::new(&bytes, file.place("link message", address)), file.sizes())
    }

    /// Passes every link to `visit`, in heap order: usually creation order, and often name order. The tree is sorted by hash,
    /// which would jump from block to block.
    fn visit(&self, file: &File, visit: &mut dyn FnMut(Link)) -> Result<()> {
        self.visit_stored(file, &mut |bytes, place| {
            visit(Link::parse(&mut Fields::new(bytes, place), file.sizes())?);
            Ok(())
        })
    }

    /// Like [`visit`](Self::visit), with the links as they are stored.
    fn visit_stored(&self, file: &File, visit: VisitStored<'_>) -> Result<()> {
        let mut ids: Vec<(u64, SmallVec<[u8; 16]>)> = Vec::new();
        self.names.visit(file, &mut |record, place| {
            // The hash, then the heap id.
            let id = record.get(4..).ok_or_else(|| place.corrupt("a record is shorter than a heap id"))?;
            ids.push((self.heap.offset(id), id.into()));
            Ok(ControlFlow::Continue(()))
        })?;
        ids.sort_unstable_by_key(|(offset, _)| *offset);
        for (_, id) in &ids {
            let (bytes, address) = self.message(file, id)?;
            visit(&bytes, file.place("link message", address))?;
        }
        Ok(())
    }

    fn all(&self, file: &File) -> Result<Vec<Link>> {
        let mut links = Vec::new();
        self.visit(file, &mut |link| links.push(link))?;
        if !self.ordered {
            links.iter_mut().for_each(|link| link.order = None);
        }
        sort(&mut links);
        Ok(links)
    }

    fn names(&self, file: &File) -> Result<Vec<String>> {
        let mut names = Vec::new();
        let mut orders = Vec::new();
        self.visit(file, &mut |link| {
            if let Some(order) = link.order.filter(|_| self.ordered) {
                orders.push((order, names.len()));
            }
            names.push(link.name);
        })?;
        if orders.len() < names.len() {
            // Names are mostly sorted already, so a stable sort, which detects that, is faster.
            names.sort();
            return Ok(names);
        }
        orders.sort_unstable();
        Ok(orders.into_iter().map(|(_, index)| std::mem::take(&mut names[index])).collect())
    }

    fn find(&self, file: &File, name: &str) -> Result<Option<Link>> {
        let hash = lookup3(name.as_bytes(), 0);
        let mut found = None;
        self.names.search(file, &mut |record| Ok(compare_hash(hash, record)), &mut |record| {
            let link = self.link(file, record.get(4..).unwrap_or_default())?;
            if link.name == name {
                found = Some(link);
            }
            Ok(())
        })?;
        Ok(found)
    }
}

fn compare_hash(hash: u32, record: &[u8]) -> Ordering {
    record.first_chunk::<4>().map_or(Ordering::Less, |stored| hash.cmp(&u32::from_le_bytes(*stored)))
}

impl Link {
    /// Converts to the core's model.
    pub(crate) fn into_model(self) -> hyperslab_core::Link {
        use hyperslab_core::{LinkTarget as Target, ObjectId};
        let target = match self.target {
            LinkTarget::Hard(address) => Target::Hard(ObjectId(address)),
            LinkTarget::Soft(path) => Target::Soft(path),
            LinkTarget::External { file, path } => Target::External { file, path },
            LinkTarget::Other(kind) => Target::Other(kind),
        };
        hyperslab_core::Link { name: self.name, utf8: self.utf8, target, renamed: false }
    }
}

impl LinkTarget {
    /// The target as text, for a dangling link.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Hard(address) => format!("the object at {address:#x}"),
            Self::Soft(path) => path.clone(),
            Self::External { file, path } => format!("{file}:{path}"),
            Self::Other(kind) => format!("a link of kind {kind}"),
        }
    }
}
