//! An object's attributes, from its header or a heap.

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use hyperslab_core::{
    Attribute, Attributes, Elements, Error, Extents, Fields, ObjectId, Result, StoredAttribute, TypeName,
    Values,
};

use crate::btree2::BTree2;
use crate::conversion::{Element, Heaps};
use crate::file::{File, FileFields};
use crate::header::{Header, Message, kind};
use crate::heap::fractal::FractalHeap;
use crate::message::attribute::{Content, RawAttribute};
use crate::shared;

/// All attributes, not yet decoded: in creation order if it is tracked, else by name.
pub(crate) fn raw(file: &File, header: &Header) -> Result<Vec<RawAttribute>> {
    let mut found: Vec<(u32, RawAttribute)> = Vec::new();
    for message in header.all(kind::ATTRIBUTE) {
        let parsed = header.resolve(file, message).and_then(|message| RawAttribute::parse(file, &message));
        found.push((
            u32::from(message.order),
            parsed.unwrap_or_else(|error| damaged(message.address, &error)),
        ));
    }
    if let Err(error) = dense(file, header, &mut found) {
        found.push((u32::MAX, damaged(header.address, &error)));
    }
    if header.ordered {
        found.sort_by_key(|(order, _)| *order);
    } else {
        found.sort_by(|(_, a), (_, b)| a.name.as_bytes().cmp(b.name.as_bytes()));
    }
    Ok(found.into_iter().map(|(_, attribute)| attribute).collect())
}

/// An attribute whose name cannot be read. The object and its other attributes are not affected.
fn damaged(address: u64, error: &Error) -> RawAttribute {
    let name = format!("(damaged attribute at {address:#x})");
    RawAttribute { name, stored_name: Bytes::new(), content: Err(error.to_string()) }
}

/// The attributes in an object's heap, as stored and by name, in creation order. Shared ones are left out.
pub(crate) fn dense_bodies(file: &File, header: &Header) -> Result<Vec<(Bytes, Vec<u8>)>> {
    let mut found = Vec::new();
    visit_dense(file, header, &mut |order, flags, message| {
        if flags & 2 == 0 {
            found.push((order, RawAttribute::parse(file, &message)?.stored_name, message.body.to_vec()));
        }
        Ok(())
    })?;
    found.sort();
    Ok(found.into_iter().map(|(_, name, body)| (name, body)).collect())
}

fn dense(file: &File, header: &Header, found: &mut Vec<(u32, RawAttribute)>) -> Result<()> {
    visit_dense(file, header, &mut |order, _, message| {
        found.push((order, RawAttribute::parse(file, &message)?));
        Ok(())
    })
}

/// Visits an attribute in a heap, given its creation order, its flags and its message.
type VisitDense<'a> = &'a mut dyn FnMut(u32, u8, Message) -> Result<()>;

fn visit_dense(file: &File, header: &Header, visit: VisitDense<'_>) -> Result<()> {
    let Some(message) = header.find(file, kind::ATTRIBUTE_INFO)? else { return Ok(()) };
    let mut fields = message.fields(file, "attribute info message");
    fields.version(&[0])?;
    if fields.u8()? & 1 != 0 {
        fields.skip(2)?;
    }
    let Some(heap) = fields.address(file.sizes())? else { return Ok(()) };
    let names = BTree2::read(file, fields.defined(file.sizes())?)?;
    let heap = FractalHeap::read(file, heap)?;
    names.visit(file, &mut |record, place| {
        // Heap id, message flags, creation order, hash of the name.
        let mut fields = Fields::new(record, place);
        let id = fields.bytes(8.max(heap.id_length()).min(record.len().saturating_sub(9)))?;
        let flags = fields.u8()?;
        let order = fields.u32()?;
        let message = if flags & 2 != 0 {
            shared::from_heap(file, kind::ATTRIBUTE, id, place)?
        } else {
            let (body, address) = heap.object(file, id)?;
            Message { kind: kind::ATTRIBUTE, flags: 0, body, address, order: 0 }
        };
        visit(order, flags, message)?;
        Ok(ControlFlow::Continue(()))
    })
}

/// Decodes all attributes. One that cannot be read holds the error.
pub(crate) fn decode(file: &Arc<File>, raw: &[RawAttribute]) -> Attributes {
    let mut attributes: Attributes = raw
        .iter()
        .map(|attribute| {
            let value = match &attribute.content {
                Ok(content) => {
                    values(file, content).unwrap_or_else(|error| Attribute::Unreadable(error.to_string()))
                }
                Err(reason) => Attribute::Unreadable(reason.clone()),
            };
            (attribute.name.clone(), value)
        })
        .collect();
    for attribute in raw {
        if let Ok(content) = &attribute.content {
            attributes.set_stored(attribute.name.clone(), content.stored());
        }
    }
    attributes
}

impl Content {
    /// How it is stored, in terms of the core's model.
    fn stored(&self) -> StoredAttribute {
        StoredAttribute {
            dtype: Arc::clone(&self.dtype),
            named_type: self.named_type.map(|address| TypeName::Id(ObjectId(address))),
            no_space: self.space.null,
            utf8_name: self.utf8_name,
        }
    }
}

fn values(file: &Arc<File>, content: &Content) -> Result<Attribute> {
    let element = Element::new(&content.dtype, file.sizes(), &file.name)?;
    if content.space.null {
        // No shape and no value: h5py calls this Empty.
        return Ok(Values {
            shape: Extents::from_slice(&[0]),
            elements: Elements::empty(&element.dtype),
            dtype: element.dtype,
        }
        .into());
    }
    let heaps = Heaps::new(file, file.place("attribute", 0));
    let elements = element.elements(&content.data, &heaps)?;
    Ok(Values::new(element.dtype, &content.space.shape, elements)?.into())
}
