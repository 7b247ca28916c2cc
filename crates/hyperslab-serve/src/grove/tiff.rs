//! Images as TIFF: one page for two dimensions, one per image for more.

use std::io::Cursor;

use hyperslab::{DType, Element, Values};
use tiff::encoder::{TiffEncoder, TiffValue, colortype};

use crate::answer::Failure;

pub(crate) fn encode(values: &Values) -> Result<Vec<u8>, Failure> {
    use colortype::{
        Gray8, Gray16, Gray32, Gray32Float, Gray64, Gray64Float, GrayI8, GrayI16, GrayI32, GrayI64,
    };
    match &values.dtype {
        DType::Bool => pages::<Gray8, u8>(&retyped(values, DType::UInt8)),
        DType::UInt8 => pages::<Gray8, u8>(values),
        DType::UInt16 => pages::<Gray16, u16>(values),
        DType::UInt32 => pages::<Gray32, u32>(values),
        DType::UInt64 => pages::<Gray64, u64>(values),
        DType::Int8 => pages::<GrayI8, i8>(values),
        DType::Int16 => pages::<GrayI16, i16>(values),
        DType::Int32 => pages::<GrayI32, i32>(values),
        DType::Int64 => pages::<GrayI64, i64>(values),
        DType::Float16 => {
            let halves = values.elements.as_fixed().cloned().unwrap_or_default();
            let halves = halves.chunks_exact(2).map(bytemuck::pod_read_unaligned::<half::f16>);
            let singles: Vec<u8> = halves.flat_map(|half| half.to_f32().to_ne_bytes()).collect();
            let elements = hyperslab::Elements::fixed(singles);
            pages::<Gray32Float, f32>(&Values::new(DType::Float32, &values.shape, elements)?)
        }
        DType::Float32 => pages::<Gray32Float, f32>(values),
        DType::Float64 => pages::<Gray64Float, f64>(values),
        DType::Enum(named) => encode(&retyped(values, named.base.clone())),
        other => Err(Failure::query(format!("tiff of {other} is not supported"))),
    }
}

fn retyped(values: &Values, dtype: DType) -> Values {
    Values { dtype, shape: values.shape.clone(), elements: values.elements.clone() }
}

fn pages<C, T>(values: &Values) -> Result<Vec<u8>, Failure>
where
    C: colortype::ColorType<Inner = T>,
    T: Element,
    [T]: TiffValue,
{
    let numbers = values.to_vec::<T>()?;
    let (height, width) = match values.shape.as_slice() {
        [width] => (1, *width),
        [.., height, width] => (*height, *width),
        [] => (1, 1),
    };
    let extent = |extent: u64| {
        u32::try_from(extent).map_err(|_| Failure::query("an image this large is not supported as tiff"))
    };
    let (width, height) = (extent(width)?, extent(height)?);
    let each = width as usize * height as usize;
    if each == 0 {
        return Err(Failure::query("tiff cannot hold an image without pixels"));
    }
    let failed = |error: tiff::TiffError| Failure::internal(format!("tiff: {error}"));
    let mut out = Cursor::new(Vec::new());
    let mut encoder = TiffEncoder::new(&mut out).map_err(failed)?;
    for page in numbers.chunks_exact(each) {
        encoder.write_image::<C>(width, height, page).map_err(failed)?;
    }
    Ok(out.into_inner())
}
