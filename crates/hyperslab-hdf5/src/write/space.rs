//! How a file manages its space: pages, and recorded free space.

use std::sync::Arc;

use hyperslab_core::{Error, Result};

use super::edit::HeaderEdit;
use super::index::Patch;
use super::object::{NewHeader, NewMessage, Style};
use super::output::Output;
use crate::encode::Encoder;
use crate::file::{File, Sizes};
use crate::header::{Header, kind};

const STRUCTURE: &str = "file space info message";
/// The strategy number of paged files.
const PAGES: u8 = 1;
/// libhdf5 accepts pages of these sizes.
const LEAST_PAGE: u64 = 512;
const MOST_PAGE: u64 = 1 << 30;

/// The space management settings of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FileSpace {
    /// The page size of a paged file.
    pub(crate) page: Option<u64>,
    /// Whether free space is recorded in the file.
    pub(crate) kept: bool,
}

impl FileSpace {
    /// Reads the settings. Most files have none.
    pub(crate) fn read(file: &Arc<File>) -> Result<Self> {
        let Some(extension) = file.superblock.extension else { return Ok(Self::default()) };
        let header = Header::read(file, extension)?;
        let Some(message) = header.find(file, kind::FREE_SPACE)? else { return Ok(Self::default()) };
        let mut fields = message.fields(file, STRUCTURE);
        let (version, strategy, kept) = (fields.u8()?, fields.u8()?, fields.u8()? != 0);
        if version == 0 {
            // Written by an unreleased library version, whose strategy 1 records free space.
            return match strategy {
                1 => Err(file.unsupported("free space as early versions of libhdf5 1.10 kept it")),
                _ => Ok(Self::default()),
            };
        }
        let width = file.sizes().length;
        fields.skip(width)?;
        let page = fields.uint(width)?;
        if strategy != PAGES {
            return Ok(Self { page: None, kept });
        }
        check_page(page).map_err(|why| file.place(STRUCTURE, extension).corrupt(why.to_string()))?;
        Ok(Self { page: Some(page), kept })
    }

    /// The change that makes a file forget its recorded free space. Additions are placed after everything else, and libhdf5
    /// would otherwise believe that the file still ends where it ended when free space was recorded.
    pub(crate) fn forget(file: &Arc<File>, output: &Output) -> Result<Vec<Patch>> {
        let Some(extension) = file.superblock.extension else { return Ok(Vec::new()) };
        let header = Header::read(file, extension)?;
        let Some(message) = header.find(file, kind::FREE_SPACE)? else { return Ok(Vec::new()) };
        // After the version, the strategy, the flag, two lengths and a threshold follow the end of the file before free space
        // was written, and the addresses of the free-space managers.
        let at = 3 + 2 * file.sizes().length + 2;
        let room = message.body.len().saturating_sub(at);
        let addresses = (room / file.sizes().address).min(13);
        let mut edit = HeaderEdit::new(&header, output);
        edit.set(&message, at, &vec![0xff; addresses * file.sizes().address])?;
        edit.finish(file.sizes())
    }
}

/// Refuses page sizes that libhdf5 refuses.
pub(crate) fn check_page(page: u64) -> Result<()> {
    if (LEAST_PAGE..=MOST_PAGE).contains(&page) {
        return Ok(());
    }
    Err(Error::invalid(format!("pages of {page} bytes: HDF5 has pages of {LEAST_PAGE} bytes to 1 GiB")))
}

/// Writes the superblock extension of a paged file. Returns its address.
pub(crate) fn write_pages(page: u64, sizes: Sizes, output: &Output) -> Result<u64> {
    let mut body = Encoder::new(sizes);
    // Free space of any size is tracked but not recorded; metadata may fill its pages.
    body.u8(1).u8(PAGES).u8(0).length(1).length(page).u16(0).address(None);
    let mut header = NewHeader::new(Style::New);
    header.order = hyperslab_core::CreationOrder::Untracked;
    header.messages.push(NewMessage::new(kind::FREE_SPACE, 4, body.finish()?));
    output.append(&header.encode(sizes)?)
}
