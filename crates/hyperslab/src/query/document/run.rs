//! Runs documents on a store.

use std::path::Path;

use hyperslab_core::storage::{StageOptions, StagedFile};
use hyperslab_core::{
    AxisSelection, DType, Elements, Error, Labels, Number, Result, Selection, Values, normal_path,
};
use serde_json::{Map, Value, json};

use super::{Document, Requested, answer, bad};
use crate::query::condition::Mask;
use crate::query::operand::{Cell, Stored, for_stored};
use crate::query::plan::fill_value;
use crate::query::{Axis, Group, Operation, Query, axes, pairs, transform};
use crate::{ArrayReader, OpenStore};

impl Document {
    /// Runs the query on a store. The answer shows at most `preview` values of a dense result.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) for axes or labels that the dataset does not have; otherwise any error from reading.
    pub fn run(&self, store: &OpenStore, preview: usize) -> Result<Value> {
        let array = store.array(&normal_path(&self.dataset))?;
        let execution = match &self.align {
            Some((with, along)) => self.alignment(&array, &store.array(&normal_path(with))?, with, along)?,
            None => self.ask(store, &array, preview)?,
        };
        Ok(json!({
            "status": "ok",
            "accepted": true,
            "dataset": self.dataset,
            "operation": self.operation.as_ref().map(|(key, _)| key),
            "tet_file": store.path().display().to_string(),
            "execution": execution,
        }))
    }

    /// The answer for a document that is only checked.
    #[must_use]
    pub fn accepted(&self) -> Value {
        json!({
            "status": "ok",
            "accepted": true,
            "dataset": self.dataset,
            "selection_axes": self.selection.as_ref().map(Vec::len),
            "operation": self.operation.as_ref().map(|(key, _)| key),
        })
    }

    fn ask(&self, store: &OpenStore, array: &ArrayReader, preview: usize) -> Result<Map<String, Value>> {
        let selection = self.selected(array)?;
        let rank = array.schema().grid.rank();
        let over = axes::resolve_all(&self.axes, array.schema())?;
        if rank > 0 && over.len() == rank && self.window.is_none() {
            return Err(bad("every axis is listed; write [] to reduce them all"));
        }
        if let Some(Group::Positions(by) | Group::Labels(by)) = &self.group {
            let by = axes::resolve_all(by, array.schema())?;
            let rest = (0..rank).filter(|axis| !by.contains(axis)).count();
            if rest == 0 {
                return Err(bad("`group_by` must leave at least one axis to reduce"));
            }
            if !over.is_empty() && (over.len() != rest || over.iter().any(|axis| by.contains(axis))) {
                return Err(bad("with `group_by`, the reduced axes are all others: write []"));
            }
        }
        let mut query = Query::new(Operation::Count).select(selection).filter(self.conditions.clone());
        query.over.clone_from(&self.axes);
        query.labelled.extend(self.label.clone());
        query.group.clone_from(&self.group);
        query.window.clone_from(&self.window);
        query.memory = self.memory.filter(|bytes| *bytes > 0).map(|bytes| bytes.max(1 << 20));
        match &self.operation {
            None => self.dense(store, array, &query, preview),
            Some((key, Requested::Reduce { operation, skip_nan })) => {
                let query = Query { operation: *operation, skip_nan: *skip_nan, ..query };
                self.reduce(key, array, &query)
            }
            Some((_, Requested::Covariance { correlation })) => {
                let matrix = pairs::matrix(array, &query.selection, over[0], *correlation)?;
                let name = if *correlation { "correlation" } else { "covariance" };
                Ok(Map::from_iter([
                    (format!("operation_{name}"), answer::flat(&matrix)),
                    (format!("operation_{name}_order"), matrix.shape[0].into()),
                ]))
            }
            Some((_, Requested::Transform(method))) => {
                let values = transform::transform(array, &query, *method)?;
                let mut fields = self.values(store, &values, preview)?;
                fields.insert("transform_method".to_owned(), method.name().into());
                Ok(fields)
            }
        }
    }

    fn reduce(&self, key: &str, array: &ArrayReader, query: &Query) -> Result<Map<String, Value>> {
        let found = query.run(array)?;
        let scalar = self.axes.is_empty() && self.group.is_none() && self.window.is_none();
        let filtered = !self.conditions.is_empty() || self.label.is_some();
        let matched = if filtered && scalar && key != "count" {
            let count = Query { operation: Operation::Count, skip_nan: false, ..query.clone() };
            count.run(array)?.scalar()?.map(|count| count as u64)
        } else {
            None
        };
        let mut fields = answer::fields(key, &found, scalar, matched)?;
        if self.window.is_some() {
            let axis = query.window.as_ref().map(|window| window.axis.resolve(array.schema())).transpose()?;
            let kept = (0..axis.unwrap_or(0)).filter(|axis| !self.reduces(array, *axis)).count();
            fields.insert("window_count".to_owned(), found.shape()[kept].into());
        }
        if self.group.is_some() {
            fields.insert("group_count".to_owned(), found.shape().iter().product::<u64>().into());
        }
        Ok(fields)
    }

    fn reduces(&self, array: &ArrayReader, axis: usize) -> bool {
        self.axes.iter().any(|own| own.resolve(array.schema()).is_ok_and(|own| own == axis))
    }

    /// The values themselves, with those that fail a filter replaced by the fill value.
    fn dense(
        &self,
        store: &OpenStore,
        array: &ArrayReader,
        query: &Query,
        preview: usize,
    ) -> Result<Map<String, Value>> {
        if self.label.is_some() {
            return Err(bad("`label_filter` requires a reduction"));
        }
        let mut values = array.read(&query.selection)?;
        if !self.conditions.is_empty() {
            let stored = Stored::of(&values.dtype, &self.dataset)?;
            let fill = fill_value(array, stored.key_kind());
            let blank = blank(&values.dtype, fill)?;
            values = for_stored!(stored, blanked(values, self, fill, &blank))?;
        }
        self.values(store, &values, preview)
    }

    /// A dense result: its first values, and all of them in a file if one is named.
    fn values(&self, store: &OpenStore, values: &Values, preview: usize) -> Result<Map<String, Value>> {
        let bytes = values.elements.as_fixed().ok_or_else(|| bad("values without a fixed size"))?;
        let short = match &values.dtype {
            DType::Bool | DType::UInt8 => "u8",
            DType::Float16 => "f16",
            DType::Float32 => "f32",
            DType::Float64 => "f64",
            DType::Int8 => "i8",
            DType::Int16 => "i16",
            DType::Int32 => "i32",
            DType::Int64 => "i64",
            DType::UInt16 => "u16",
            DType::UInt32 => "u32",
            _ => "u64",
        };
        let shown = values.len().min(preview);
        let item = values.dtype.size().unwrap_or(1);
        let head =
            Values::new(values.dtype.clone(), &[shown as u64], Elements::fixed(bytes.slice(..shown * item)))?;
        let mut fields = Map::from_iter([
            (format!("{short}_preview"), answer::flat(&head)),
            (format!("{short}_preview_truncated"), (shown < values.len()).into()),
            ("operation_element_count".to_owned(), values.len().into()),
            ("logical_selection_bytes".to_owned(), bytes.len().into()),
        ]);
        if let Some(path) = &self.spill {
            let folder = store.path().parent().unwrap_or(Path::new("."));
            let target = folder.join(path);
            let staged = StagedFile::create(&target, StageOptions::default())?;
            let mut little = bytes.to_vec();
            if cfg!(target_endian = "big") {
                little.chunks_exact_mut(values.dtype.swap_unit().unwrap_or(1)).for_each(<[u8]>::reverse);
            }
            staged.write_at(&little, 0)?;
            staged.publish()?;
            fields.insert("spill_path".to_owned(), target.display().to_string().into());
            fields.insert("spill_bytes".to_owned(), little.len().into());
        }
        Ok(fields)
    }

    /// The selection as positions, with labels resolved and bounds checked. It must not be empty.
    fn selected(&self, array: &ArrayReader) -> Result<Selection> {
        let Some(slices) = &self.selection else { return Ok(Selection::all()) };
        let shape = array.schema().shape();
        if slices.len() != shape.len() {
            return Err(bad(format!(
                "`selection` has {} entries, but the dataset has {} axes",
                slices.len(),
                shape.len()
            )));
        }
        let mut all = Vec::new();
        for (axis, (slice, extent)) in slices.iter().zip(shape).enumerate() {
            let start = end(array, axis, slice.start, slice.start_label.as_deref())?.unwrap_or(0);
            let stop = end(array, axis, slice.stop, slice.stop_label.as_deref())?.unwrap_or(*extent);
            if start >= stop || stop > *extent {
                return Err(bad(format!(
                    "selection[{axis}]: {start} to {stop} is empty or outside {extent} cells"
                )));
            }
            all.push(AxisSelection::Slice {
                start: i64::try_from(start).ok(),
                stop: i64::try_from(stop).ok(),
                step: i64::try_from(slice.step.unwrap_or(1)).unwrap_or(i64::MAX),
            });
        }
        Ok(Selection::positions(all))
    }

    fn alignment(
        &self,
        left: &ArrayReader,
        right: &ArrayReader,
        with: &str,
        along: &[Axis],
    ) -> Result<Map<String, Value>> {
        let mut rows = Vec::new();
        for axis in along {
            rows.push(compare(axis, left, right)?);
        }
        let aligned = rows.iter().all(|row| row["ok"] == Value::Bool(true));
        let alignment = json!({"aligned": aligned, "left": self.dataset, "with": with, "axes": rows});
        Ok(Map::from_iter([("alignment".to_owned(), alignment)]))
    }
}

/// One bound of a slice: a position, or the first position with the label.
fn end(array: &ArrayReader, axis: usize, position: Option<u64>, label: Option<&str>) -> Result<Option<u64>> {
    let Some(label) = label else { return Ok(position) };
    let Labels::Texts(texts) = &array.schema().labels[axis] else {
        return Err(bad(format!("selection[{axis}]: the axis has no labels")));
    };
    let found = texts.iter().position(|text| text == label);
    found
        .map(|found| Some(found as u64))
        .ok_or_else(|| bad(format!("selection[{axis}]: the axis has no label {label}")))
}

/// Compares two datasets along an axis.
fn compare(axis: &Axis, left: &ArrayReader, right: &ArrayReader) -> Result<Value> {
    let (a, b) = (axis.resolve(left.schema())?, axis.resolve(right.schema())?);
    let extents = (left.schema().shape()[a], right.schema().shape()[b]);
    let names = (&left.schema().dimensions[a], &right.schema().dimensions[b]);
    let labels = left.schema().labels[a] == right.schema().labels[b];
    let reason = if extents.0 != extents.1 {
        Some("the extents differ")
    } else if names.0 != names.1 && names.0.is_some() && names.1.is_some() {
        Some("the dimension names differ")
    } else if !labels {
        Some("the labels differ")
    } else {
        None
    };
    Ok(json!({
        "axis": axis.to_string(), "ok": reason.is_none(), "extent_left": extents.0, "extent_right": extents.1,
        "dim_name_left": names.0, "dim_name_right": names.1, "labels_ok": labels, "reason": reason,
    }))
}

/// The replacement for a value that fails a filter.
fn blank(dtype: &DType, fill: Option<Number>) -> Result<Vec<u8>> {
    Ok(match (dtype, fill) {
        (DType::Float16, _) => half::f16::NAN.to_ne_bytes().to_vec(),
        (DType::Float32, _) => f32::NAN.to_ne_bytes().to_vec(),
        (DType::Float64, _) => f64::NAN.to_ne_bytes().to_vec(),
        (_, Some(Number::Integer(value))) => {
            let mut bytes = value.to_le_bytes()[..dtype.size().unwrap_or(8)].to_vec();
            if cfg!(target_endian = "big") {
                bytes.reverse();
            }
            bytes
        }
        _ => {
            return Err(Error::invalid(
                "a filter without a reduction replaces values by the fill value, but the dataset has none",
            ));
        }
    })
}

fn blanked<C: Cell>(
    values: Values,
    document: &Document,
    fill: Option<Number>,
    blank: &[u8],
) -> Result<Values> {
    let mask = Mask::<C::Operand>::new(&document.conditions, fill.as_slice(), false);
    let mut bytes = values.elements.as_fixed().map(|bytes| bytes.to_vec()).unwrap_or_default();
    for cell in bytes.chunks_exact_mut(size_of::<C>()) {
        let value = bytemuck::pod_read_unaligned::<C>(cell).widen();
        if mask.as_ref().is_some_and(|mask| !mask.keeps(value)) {
            cell.copy_from_slice(blank);
        }
    }
    Values::new(values.dtype, &values.shape, Elements::fixed(bytes))
}
