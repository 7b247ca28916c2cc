//! Filter pipelines, as stored in schemas and generic tiles.

use hyperslab_codec::webp::Pixels;
use hyperslab_core::{Fields, Filter as ShownFilter, Result};

use crate::datatype::{Datatype, Number};

/// An ordered list of filters.
#[derive(Debug, Clone, PartialEq)]
pub struct Pipeline {
    /// Stored, but no reader uses it as a size. The library writes 65536.
    pub max_chunk_size: u32,
    /// The filters, in the order in which writing applies them.
    pub filters: Vec<Filter>,
}

impl Default for Pipeline {
    fn default() -> Self {
        Self { max_chunk_size: 65536, filters: Vec::new() }
    }
}

/// One filter and its options.
#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    /// Passes through.
    NoOp,
    /// A zlib stream per part.
    Gzip(i32),
    /// A Zstandard frame per part.
    Zstd(i32),
    /// A bare LZ4 block per part.
    Lz4(i32),
    /// Runs of equal cells, or of equal strings.
    Rle(i32),
    /// A bzip2 stream per part.
    Bzip2(i32),
    /// Second differences, bit-packed. Interprets values as this type, if given, instead of the field's.
    DoubleDelta(i32, Option<Datatype>),
    /// Reduces the bits per value, in windows of this many bytes.
    BitWidthReduction(u32),
    /// Groups the bits of all elements of a block, lowest bits first.
    Bitshuffle,
    /// Groups the first bytes of all elements, then the second bytes, and so on.
    Byteshuffle,
    /// Differences within windows of this many bytes.
    PositiveDelta(u32),
    /// AES-256 in Galois/counter mode.
    Aes256Gcm,
    /// An MD5 digest per part.
    Md5,
    /// A SHA-256 digest per part.
    Sha256,
    /// Replaces repeated strings by numbers.
    Dictionary(i32),
    /// Stores floats as scaled integers.
    FloatScale {
        /// The difference between successive integers.
        scale: f64,
        /// The float that integer zero represents.
        offset: f64,
        /// The integer size in bytes.
        width: u64,
    },
    /// XOR of each value with its predecessor.
    Xor,
    /// First differences. Interprets values as this type, if given, instead of the field's.
    Delta(i32, Option<Datatype>),
    /// Encodes each part as an image.
    Webp(WebpOptions),
}

/// The options of the webp filter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WebpOptions {
    /// From 0 to 100, for lossy compression.
    pub quality: f32,
    /// The byte order of a pixel.
    pub pixels: Pixels,
    /// Whether compression is lossless.
    pub lossless: bool,
    /// The number of rows in a tile.
    pub rows: u16,
    /// The number of bytes in a row.
    pub row_bytes: u16,
}

impl WebpOptions {
    /// Parses `f32 quality, u8 format, u8 lossless, u16 rows, u16 row bytes, 2 bytes of padding`.
    fn parse(fields: &mut Fields<'_>) -> Result<Self> {
        let place = fields.place();
        let quality = f32::from_le_bytes(fields.array()?);
        let pixels = match fields.u8()? {
            1 => Pixels::Rgb,
            2 => Pixels::Bgr,
            3 => Pixels::Rgba,
            4 => Pixels::Bgra,
            other => return Err(place.unsupported(format!("the webp filter with the format {other}"))),
        };
        let lossless = fields.u8()? != 0;
        Ok(Self { quality, pixels, lossless, rows: fields.u16()?, row_bytes: fields.u16()? })
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = self.quality.to_le_bytes().to_vec();
        let format = match self.pixels {
            Pixels::Rgb => 1,
            Pixels::Bgr => 2,
            Pixels::Rgba => 3,
            Pixels::Bgra => 4,
        };
        out.extend([format, u8::from(self.lossless)]);
        out.extend(self.rows.to_le_bytes());
        out.extend(self.row_bytes.to_le_bytes());
        out.extend([0; 2]);
        out
    }

    /// The number of pixels in a row, and the number of rows.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.row_bytes as usize / self.pixels.size(), self.rows as usize)
    }

    /// The size of an image in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let (width, height) = self.size();
        width * height * self.pixels.size()
    }

    fn shown(&self) -> ShownFilter {
        let order = match self.pixels {
            Pixels::Rgb => "RGB",
            Pixels::Bgr => "BGR",
            Pixels::Rgba => "RGBA",
            Pixels::Bgra => "BGRA",
        };
        let shown = ShownFilter::new("webp").with("input_format", order).with("lossless", self.lossless);
        if self.lossless { shown } else { shown.with("quality", f64::from(self.quality)) }
    }
}

impl Pipeline {
    /// Creates a pipeline of these filters.
    #[must_use]
    pub fn of(filters: impl IntoIterator<Item = Filter>) -> Self {
        Self { filters: filters.into_iter().collect(), ..Self::default() }
    }

    /// Returns true if there are no filters.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.filters.iter().all(|filter| *filter == Filter::NoOp)
    }

    pub(crate) fn parse(fields: &mut Fields<'_>) -> Result<Self> {
        let max_chunk_size = fields.u32()?;
        let count = fields.count_u32(5)?;
        let filters = (0..count).map(|_| Filter::parse(fields)).collect::<Result<_>>()?;
        Ok(Self { max_chunk_size, filters })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.max_chunk_size.to_le_bytes());
        out.extend((self.filters.len() as u32).to_le_bytes());
        for filter in &self.filters {
            let options = filter.options();
            out.push(filter.code());
            out.extend((options.len() as u32).to_le_bytes());
            out.extend(options);
        }
    }

    /// The input type of each filter, for a field of type `datatype`.
    pub(crate) fn types(&self, datatype: Datatype) -> Vec<Datatype> {
        let mut current = datatype;
        let mut types = Vec::with_capacity(self.filters.len());
        for filter in &self.filters {
            types.push(current);
            current = filter.output_type(current);
        }
        types
    }

    /// The filters in the common representation of all formats.
    #[must_use]
    pub fn shown(&self) -> Vec<ShownFilter> {
        self.filters.iter().map(Filter::shown).collect()
    }
}

/// The signed integer with this width in bytes.
const fn signed(width: usize) -> Datatype {
    match width {
        1 => Datatype::Int8,
        2 => Datatype::Int16,
        4 => Datatype::Int32,
        _ => Datatype::Int64,
    }
}

impl Filter {
    /// The filter's code in files.
    #[must_use]
    pub const fn code(&self) -> u8 {
        match self {
            Self::NoOp => 0,
            Self::Gzip(_) => 1,
            Self::Zstd(_) => 2,
            Self::Lz4(_) => 3,
            Self::Rle(_) => 4,
            Self::Bzip2(_) => 5,
            Self::DoubleDelta(..) => 6,
            Self::BitWidthReduction(_) => 7,
            Self::Bitshuffle => 8,
            Self::Byteshuffle => 9,
            Self::PositiveDelta(_) => 10,
            Self::Aes256Gcm => 11,
            Self::Md5 => 12,
            Self::Sha256 => 13,
            Self::Dictionary(_) => 14,
            Self::FloatScale { .. } => 15,
            Self::Xor => 16,
            Self::Webp(_) => 18,
            Self::Delta(..) => 19,
        }
    }

    fn parse(fields: &mut Fields<'_>) -> Result<Self> {
        let place = fields.place();
        let code = fields.u8()?;
        let length = fields.count_u32(1)?;
        let mut options = Fields::new(fields.bytes(length)?, place.plus(5));
        // Options of filters with a level: `u8 compressor, i32 level`. The compressor repeats the filter's code, so
        // ignore it.
        let level = |options: &mut Fields<'_>| -> Result<i32> {
            options.skip(1)?;
            options.i32()
        };
        // Early versions lack the last byte. The value 17 ("any") means no type.
        let reinterpret = |options: &mut Fields<'_>| -> Result<Option<Datatype>> {
            if options.remaining() == 0 {
                return Ok(None);
            }
            let place = options.place();
            let datatype = Datatype::parse(options.u8()?, place)?;
            Ok(Some(datatype).filter(|datatype| *datatype != Datatype::Any))
        };
        Ok(match code {
            0 => Self::NoOp,
            1 => Self::Gzip(level(&mut options)?),
            2 => Self::Zstd(level(&mut options)?),
            3 => Self::Lz4(level(&mut options)?),
            4 => Self::Rle(level(&mut options)?),
            5 => Self::Bzip2(level(&mut options)?),
            6 => Self::DoubleDelta(level(&mut options)?, reinterpret(&mut options)?),
            7 => Self::BitWidthReduction(options.u32()?),
            8 => Self::Bitshuffle,
            9 => Self::Byteshuffle,
            10 => Self::PositiveDelta(options.u32()?),
            11 => Self::Aes256Gcm,
            12 => Self::Md5,
            13 => Self::Sha256,
            14 => Self::Dictionary(level(&mut options)?),
            15 => {
                let (scale, offset, width) = (options.f64()?, options.f64()?, options.u64()?);
                if !matches!(width, 1 | 2 | 4 | 8) {
                    return Err(
                        place.corrupt(format!("float scale byte width {width}, expected 1, 2, 4 or 8"))
                    );
                }
                Self::FloatScale { scale, offset, width }
            }
            16 => Self::Xor,
            18 => Self::Webp(WebpOptions::parse(&mut options)?),
            19 => Self::Delta(level(&mut options)?, reinterpret(&mut options)?),
            other => return Err(place.corrupt(format!("filter {other}, expected at most 19 and not 17"))),
        })
    }

    fn options(&self) -> Vec<u8> {
        let level = |compressor: u8, level: i32| {
            let mut options = vec![compressor];
            options.extend(level.to_le_bytes());
            options
        };
        let any = Datatype::Any.code();
        match self {
            Self::Gzip(l) | Self::Zstd(l) | Self::Lz4(l) | Self::Rle(l) | Self::Bzip2(l) => {
                level(self.code(), *l)
            }
            Self::DoubleDelta(l, datatype) => {
                let mut options = level(6, *l);
                options.push(datatype.map_or(any, Datatype::code));
                options
            }
            // The compressor bytes of these two are 7 and 8, not the filters' codes.
            Self::Dictionary(l) => level(7, *l),
            Self::Delta(l, datatype) => {
                let mut options = level(8, *l);
                options.push(datatype.map_or(any, Datatype::code));
                options
            }
            Self::BitWidthReduction(window) | Self::PositiveDelta(window) => window.to_le_bytes().into(),
            Self::FloatScale { scale, offset, width } => {
                [scale.to_le_bytes(), offset.to_le_bytes(), width.to_le_bytes()].concat()
            }
            Self::Webp(options) => options.encode(),
            Self::NoOp
            | Self::Bitshuffle
            | Self::Byteshuffle
            | Self::Aes256Gcm
            | Self::Md5
            | Self::Sha256
            | Self::Xor => Vec::new(),
        }
    }

    /// The filter's output type for the input type `datatype`.
    fn output_type(&self, datatype: Datatype) -> Datatype {
        match self {
            Self::FloatScale { width, .. } => signed(*width as usize),
            Self::Xor => signed(datatype.size()),
            Self::DoubleDelta(_, Some(reinterpret)) | Self::Delta(_, Some(reinterpret)) => *reinterpret,
            _ => datatype,
        }
    }

    /// The common name and parameters of the filter.
    #[must_use]
    pub fn shown(&self) -> ShownFilter {
        let level = |name: &str, level: i32| ShownFilter::new(name).with("level", level);
        match self {
            Self::NoOp => ShownFilter::new("noop"),
            Self::Gzip(l) => level("gzip", *l),
            Self::Zstd(l) => level("zstd", *l),
            Self::Lz4(l) => level("lz4", *l),
            Self::Rle(l) => level("rle", *l),
            Self::Bzip2(l) => level("bzip2", *l),
            Self::DoubleDelta(l, _) => level("double_delta", *l),
            Self::BitWidthReduction(window) => {
                ShownFilter::new("bit_width_reduction").with("window", *window)
            }
            Self::Bitshuffle => ShownFilter::new("bitshuffle"),
            Self::Byteshuffle => ShownFilter::new("byteshuffle"),
            Self::PositiveDelta(window) => ShownFilter::new("positive_delta").with("window", *window),
            Self::Aes256Gcm => ShownFilter::new("aes256gcm"),
            Self::Md5 => ShownFilter::new("checksum_md5"),
            Self::Sha256 => ShownFilter::new("checksum_sha256"),
            Self::Dictionary(l) => level("dictionary", *l),
            Self::FloatScale { scale, offset, width } => ShownFilter::new("float_scale")
                .with("factor", *scale)
                .with("offset", *offset)
                .with("bytewidth", *width),
            Self::Xor => ShownFilter::new("xor"),
            Self::Delta(l, _) => level("delta", *l),
            Self::Webp(options) => options.shown(),
        }
    }

    /// Returns true if bit-width reduction or positive delta leaves values of this type unchanged. 8-bit types cannot
    /// be reduced, and before version 20 dates and times were passed through.
    pub(crate) fn passes_through(&self, datatype: Datatype, version: u32) -> bool {
        let (number, old_time) = (datatype.number(), datatype.is_time() && version < 20);
        match self {
            Self::BitWidthReduction(_) => number.size() == 1 || number.is_float() || old_time,
            Self::PositiveDelta(_) => {
                number.is_float()
                    || old_time
                    || (datatype.is_bytes()
                        && !matches!(datatype, Datatype::Blob | Datatype::GeomWkb | Datatype::GeomWkt))
            }
            _ => false,
        }
    }
}

/// The numeric type for a delta filter.
pub(crate) const fn delta_number(input: Datatype, reinterpret: Option<Datatype>) -> Number {
    match reinterpret {
        Some(datatype) => datatype.number(),
        None => input.number(),
    }
}
