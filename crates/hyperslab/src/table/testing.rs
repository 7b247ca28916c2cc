//! A table in memory, for tests.

use std::sync::Arc;

use hyperslab_core::{
    Attributes, Batch, Batches, Bound, Bounds, Column, DType, Elements, Error, Node, Report, Result, Scan,
    Store, Table, TableSchema, TimeUnit, Validity,
};

use crate::rows::plain_column;

/// Rows in memory, returned in small batches.
#[derive(Debug)]
pub(crate) struct MemoryTable {
    pub(crate) schema: TableSchema,
    pub(crate) batch: Batch,
    pub(crate) each: usize,
}

impl Table for MemoryTable {
    fn schema(&self) -> &TableSchema {
        &self.schema
    }

    fn name(&self) -> &str {
        "memory"
    }

    fn rows(&self) -> Result<u64> {
        Ok(self.batch.rows as u64)
    }

    fn scan(&self, request: &Scan) -> Result<Batches<'_>> {
        let position = |name: &String| {
            let found = self.schema.columns.iter().position(|column| column.name == *name);
            found.ok_or_else(|| Error::invalid(format!("no column {name}")))
        };
        let region = request
            .region
            .iter()
            .map(|(name, bounds)| Ok((position(name)?, bounds.clone())))
            .collect::<Result<Vec<_>>>()?;
        let chosen = match &request.columns {
            Some(names) => names.iter().map(position).collect::<Result<Vec<_>>>()?,
            None => (0..self.schema.columns.len()).collect(),
        };
        let columns = |name: &str| {
            let at = position(&name.to_owned())?;
            Ok((self.schema.columns[at].dtype.clone(), self.batch.columns[at].clone()))
        };
        let passed = match &request.filter {
            Some(filter) => filter.evaluate(self.batch.rows, &columns)?.into_yes(),
            None => vec![1; self.batch.rows],
        };
        let rows: Vec<usize> = (0..self.batch.rows)
            .filter(|&row| {
                passed[row] == 1
                    && region.iter().all(|(at, bounds)| {
                        inside(&self.schema.columns[*at].dtype, &self.batch.columns[*at], row, bounds)
                    })
            })
            .collect();
        let batches: Vec<_> = rows
            .chunks(self.each.max(1))
            .map(|rows| {
                let picks: Vec<_> = rows.iter().map(|row| (0, *row)).collect();
                let columns = chosen
                    .iter()
                    .map(|&at| {
                        Elements::gather(&self.schema.columns[at].dtype, &[&self.batch.columns[at]], &picks)
                    })
                    .collect::<Result<_>>()?;
                Ok(Batch { rows: rows.len(), columns })
            })
            .collect();
        Ok(Box::new(batches.into_iter()))
    }
}

fn inside(dtype: &DType, elements: &Elements, row: usize, bounds: &Bounds) -> bool {
    let value = match dtype {
        DType::String => Bound::Bytes(elements.variable_at(row).unwrap_or_default().to_vec()),
        _ => {
            let bytes: [u8; 8] = elements.as_fixed().unwrap()[row * 8..][..8].try_into().unwrap();
            match dtype {
                DType::Float64 => Bound::Float(f64::from_ne_bytes(bytes)),
                _ => Bound::Integer(i64::from_ne_bytes(bytes).into()),
            }
        }
    };
    let compare = |other: &Bound| match (&value, other) {
        (Bound::Integer(a), Bound::Integer(b)) => a.cmp(b),
        (Bound::Float(a), Bound::Float(b)) => a.total_cmp(b),
        (Bound::Bytes(a), Bound::Bytes(b)) => a.cmp(b),
        _ => panic!("a bound of another kind than its dimension"),
    };
    bounds.low.as_ref().is_none_or(|low| compare(low).is_ge())
        && bounds.high.as_ref().is_none_or(|high| compare(high).is_le())
}

/// Five rows: an integer, a date, a float and a text dimension, a nullable number and a text.
pub(crate) fn sample() -> MemoryTable {
    let dimension = |name: &str, dtype| Column { dimension: true, ..plain_column(name, dtype, false) };
    let longs = |numbers: [i64; 5]| Elements::fixed(bytemuck::cast_slice(&numbers).to_vec());
    let floats = |numbers: [f64; 5]| Elements::fixed(bytemuck::cast_slice(&numbers).to_vec());
    let columns = vec![
        dimension("x", DType::Int64),
        dimension("d", DType::DateTime(TimeUnit::Day)),
        dimension("y", DType::Float64),
        dimension("s", DType::String),
        plain_column("n", DType::Int32, true),
        plain_column("t", DType::String, false),
    ];
    let numbers: [i32; 5] = [10, 20, 30, 40, 50];
    let validity = Validity::from_flags([true, true, false, true, true]);
    let batch = Batch {
        rows: 5,
        columns: vec![
            longs([-7, -5, 0, 5, 6]),
            longs([18_261, 18_262, 18_293, 18_294, 18_322]),
            floats([-1.5, 0.0, 0.25, 1e300, 2.0]),
            Elements::variable(["a", "b", "bb", "c", "ü"]),
            Elements::fixed(bytemuck::cast_slice(&numbers).to_vec()).with_validity(Some(validity)),
            Elements::variable(["", "one, two", "\"q\"", "line\nbreak", "z"]),
        ],
    };
    MemoryTable {
        schema: TableSchema { columns, attributes: Attributes::new(), stored: Default::default() },
        batch,
        each: 2,
    }
}

/// A store with a single node.
#[derive(Debug)]
pub(crate) struct OneNode {
    name: Arc<str>,
    node: Node,
}

impl OneNode {
    pub(crate) fn open(node: Node) -> crate::OpenStore {
        crate::OpenStore::from_store(Arc::new(Self { name: "memory".into(), node }), "memory")
    }
}

impl Store for OneNode {
    fn format(&self) -> &'static str {
        "memory"
    }

    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn children(&self, _: &str) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn node(&self, path: &str) -> Result<Node> {
        if path == "/" { Ok(self.node.clone()) } else { Err(Error::not_found(Arc::clone(&self.name), path)) }
    }

    fn verify(&self, _: hyperslab_core::Depth, _: &mut Report) -> Result<()> {
        Ok(())
    }
}
