//! Checks: is everything that the footers claim there, does every tile decode, do boxes and statistics hold?

use std::sync::Arc;

use bytes::Bytes;
use hyperslab_core::{Depth, Elements, Place, Region, Report, Result, Store, product};

use crate::array::OpenArray;
use crate::datatype::CellValues;
use crate::field::FieldCodecs;
use crate::fragment::{Field, Fragment, List, Part};
use crate::schema::ArrayKind;
use crate::sparse::{DimensionRange, key_of};
use crate::stale::{self, Stale};
use crate::store::TileDbStore;
use crate::write::TileStats;

/// Findings of one kind in one array, at most: a damaged file need not fill the screen.
const MOST: usize = 20;

/// Checks a store.
pub(crate) fn verify(store: &TileDbStore, depth: Depth, report: &mut Report) -> Result<()> {
    store.walk("/", 0, &mut |path, array| match array {
        Ok(array) => {
            let from = report.findings.len();
            Check { array: &array, depth, report, problems: 0 }.run(store.name());
            for finding in &mut report.findings[from..] {
                finding.node = Some(path.to_owned());
            }
        }
        Err(error) => {
            report.failure("open", &error);
            report.at_node(path);
        }
    });
    Ok(())
}

struct Check<'a> {
    array: &'a Arc<OpenArray>,
    depth: Depth,
    report: &'a mut Report,
    problems: usize,
}

impl Check<'_> {
    fn run(&mut self, store: &str) {
        self.schemas();
        if let Err(error) = self.array.attributes() {
            self.report.failure("array_metadata", &error);
        }
        self.commits(store);
        let visible = match self.array.visible() {
            Ok(visible) => visible,
            Err(error) => return self.report.failure("commits", &error),
        };
        let mut tiles = 0;
        let count = visible.len();
        for (name, key) in visible {
            match self.array.open_fragment(name, key, None) {
                Ok(fragment) => tiles += self.fragment(&fragment),
                Err(error) => self.report.failure("fragment_metadata", &error),
            }
        }
        if let Err(error) = self.array.deletes() {
            self.report.failure("deletes", &error);
        }
        if self.problems == 0 {
            let what = if self.depth == Depth::Deep { "tiles decoded" } else { "tiles located" };
            self.report.passed("tiles", format!("{tiles} {what} in {count} fragments"));
        }
    }

    fn fail(&mut self, check: &'static str, error: &hyperslab_core::Error) {
        self.problems += 1;
        if self.problems <= MOST {
            self.report.failure(check, error);
        }
    }

    /// Every schema, not only the current one: fragments name theirs.
    fn schemas(&mut self) {
        let names: Vec<String> = self.array.listing.schemas.iter().map(|name| name.stem.clone()).collect();
        for name in &names {
            if let Err(error) = self.array.schema_named(Some(name)) {
                self.report.failure("schema", &error);
            }
        }
        for (name, _) in &self.array.schema.enumerations {
            if let Err(error) = self.array.enumeration(name) {
                self.report.failure("enumeration", &error);
            }
        }
        self.report.passed("schema", format!("{} schemas", names.len().max(1)));
    }

    /// Fragments nobody committed, commits of nothing, lists of what is gone.
    fn commits(&mut self, store: &str) {
        let commits = match self.array.commits() {
            Ok(commits) => commits,
            Err(error) => return self.report.failure("commits", &error),
        };
        for file in &self.array.listing.fragment_metas {
            if let Err(error) = self.array.footer_file(file) {
                self.report.failure("consolidated_footers", &error);
            }
        }
        match stale::find(self.array) {
            Ok(all) => self.leftovers(&all, store),
            Err(error) => self.report.failure("commits", &error),
        }
        self.report.passed("commits", format!("{} fragments committed", commits.fragments.len()));
    }

    /// Warns of each leftover, and recommends each fix once.
    fn leftovers(&mut self, all: &[Stale], store: &str) {
        let mut codes: Vec<&str> = Vec::new();
        for stale in all {
            self.report.warning(stale.check, stale.found.clone());
            if !codes.contains(&stale.code) {
                codes.push(stale.code);
                let same = all.iter().filter(|other| other.code == stale.code).count();
                let message = if same > 1 {
                    format!("{}, and {} more", stale.fix, same - 1)
                } else {
                    stale.fix.clone()
                };
                self.report.recommend(stale.code, message, Some(format!("tet repair {store}")));
            }
        }
    }

    /// Every field of a fragment; returns how many tiles there are.
    fn fragment(&mut self, fragment: &Fragment) -> u64 {
        if fragment.schema.kind == ArrayKind::Dense
            && fragment.footer.domain.is_some()
            && fragment.footer.cell_box(&fragment.schema).is_none()
        {
            let error =
                fragment.place("fragment footer").corrupt("a non-empty domain outside the array's domain");
            self.fail("non_empty_domain", &error);
            return 0;
        }
        if let Err(error) = fragment.processed_conditions() {
            self.fail("processed_conditions", &error);
        }
        if let Err(error) = fragment.totals() {
            self.fail("fragment_statistics", &error);
        }
        let mut tiles = 0;
        for (field, codecs) in fields(fragment, self.array) {
            match self.field(fragment, field, &codecs) {
                Ok(count) => tiles += count,
                Err(error) => self.fail("tiles", &error),
            }
        }
        if fragment.schema.kind == ArrayKind::Sparse
            && let Err(error) = self.boxes(fragment)
        {
            self.fail("rtree", &error);
        }
        tiles
    }

    /// File sizes and offsets; deep, also every tile and its statistics.
    fn field(&mut self, fragment: &Fragment, field: Field, codecs: &FieldCodecs) -> Result<u64> {
        let mut parts = vec![(Part::Fixed, &fragment.footer.file_sizes)];
        if codecs.offsets.is_some() {
            parts.push((Part::Values, &fragment.footer.var_sizes));
        }
        if codecs.validity.is_some() {
            parts.push((Part::Validity, &fragment.footer.validity_sizes));
        }
        let tiles = fragment.list(List::TileOffsets, field)?.len();
        for (part, sizes) in &parts {
            let file = fragment.file(field, *part);
            let stated = sizes.get(fragment.slot(field)).copied().unwrap_or(0);
            let found = self.array.directory.size(&file)?;
            if found != Some(stated) {
                let problem = format!("the footer says {stated} bytes of {file}, there are {found:?}");
                return Err(fragment.place("fragment footer").corrupt(problem));
            }
            for tile in 0..tiles {
                fragment.tile_span(field, *part, tile)?;
            }
        }
        if self.depth == Depth::Deep {
            let stats = match field {
                Field::Attribute(index) => fragment.stats(index)?,
                _ => None,
            };
            for tile in 0..tiles {
                let elements = self.decode(fragment, field, codecs, &parts, tile)?;
                if let (Some(stats), Field::Attribute(index)) = (&stats, field) {
                    self.statistics(fragment, index, stats, &elements, tile);
                }
            }
        }
        Ok(tiles as u64)
    }

    fn decode(
        &self,
        fragment: &Fragment,
        field: Field,
        codecs: &FieldCodecs,
        parts: &[(Part, &Vec<u64>)],
        tile: usize,
    ) -> Result<Elements> {
        let (mut stored, mut labels): (Vec<Bytes>, Vec<(Arc<str>, u64)>) = Default::default();
        for (part, _) in parts {
            let (offset, length) = fragment.tile_span(field, *part, tile)?;
            let blob = self.array.blob(&hyperslab_core::BlobKey::named(fragment.file(field, *part)))?;
            stored.push(blob.read_at(offset, length)?);
            labels.push((Arc::clone(blob.name()), offset));
        }
        let places: Vec<Place<'_>> =
            labels.iter().map(|(label, offset)| Place::new(label, "tile", *offset)).collect();
        let var_size = match codecs.offsets {
            Some(_) => fragment.list(List::VarSizes, field)?.get(tile).copied(),
            None => None,
        };
        codecs.decode(cells(fragment, tile), var_size, &stored, &places)
    }

    /// Are the stored minimum, maximum, sum and nulls those of the cells?
    fn statistics(
        &mut self,
        fragment: &Fragment,
        index: usize,
        stored: &crate::fragment::Stats,
        elements: &Elements,
        tile: usize,
    ) {
        let attribute = &fragment.schema.attributes[index];
        let number = attribute.datatype.number();
        // Text is left out: the library itself writes wrong extremes of it. So are floats' sums, whose last digits
        // depend on the order of adding.
        if attribute.values != CellValues::Fixed(1) || attribute.datatype.is_bytes() || number.is_float() {
            return;
        }
        let Some(own) = written_cells(fragment, elements, attribute, tile) else { return };
        let found = TileStats::of(attribute, &own, own.len(&attribute.dtype()));
        let size = number.size();
        let at = |bytes: &[u8]| bytes.get(tile * size..(tile + 1) * size).map(<[u8]>::to_vec);
        let wrong = found.min.is_some() && at(&stored.mins).is_some_and(|min| Some(min) != found.min)
            || found.max.is_some() && at(&stored.maxes).is_some_and(|max| Some(max) != found.max)
            || stored.sums.get(tile).is_some_and(|sum| *sum != found.sum)
            || attribute.nullable && stored.null_counts.get(tile).is_some_and(|nulls| *nulls != found.nulls);
        if wrong {
            let problem = format!(
                "the statistics of tile {tile} of {:?} are not those of its cells: minimum {:?} stored {:?}, maximum {:?} stored {:?}, \
                 sum {:?} stored {:?}, nulls {}",
                attribute.name,
                found.min,
                at(&stored.mins),
                found.max,
                at(&stored.maxes),
                found.sum,
                stored.sums.get(tile),
                found.nulls
            );
            // Nothing is lost; the library itself counts padding when it consolidates.
            self.report.warning("statistics", problem);
        }
    }

    /// Boxes inside the domain; deep, also every cell inside its tile's box.
    fn boxes(&mut self, fragment: &Fragment) -> Result<()> {
        let tree = fragment.rtree()?;
        for pair in tree.levels().windows(2) {
            if pair[0].len() > pair[1].len() {
                return Err(fragment.place("R-tree").corrupt("a level larger than the one below it"));
            }
        }
        if self.depth == Depth::Quick || fragment.version() < 5 {
            return Ok(());
        }
        for (index, dimension) in fragment.schema.dimensions.iter().enumerate() {
            let field = Field::Dimension(index);
            let codecs = FieldCodecs::dimension(
                &fragment.schema,
                index,
                fragment.version(),
                self.array.options.key.as_ref(),
            );
            let mut parts = vec![(Part::Fixed, &fragment.footer.file_sizes)];
            if codecs.offsets.is_some() {
                parts.push((Part::Values, &fragment.footer.var_sizes));
            }
            for (tile, leaf) in tree.leaves().iter().enumerate() {
                let elements = self.decode(fragment, field, &codecs, &parts, tile)?;
                let number = dimension.datatype.number();
                let keys = crate::sparse::Keys::of(number, &elements);
                let range = if dimension.is_text() {
                    DimensionRange::Text {
                        low: Some(leaf[index].low.clone()),
                        high: Some(leaf[index].high.clone()),
                    }
                } else {
                    DimensionRange::Fixed {
                        low: key_of(number, &leaf[index].low),
                        high: key_of(number, &leaf[index].high),
                    }
                };
                let count = elements.len(&dimension.dtype());
                let mut inside: Vec<u32> = (0..count as u32).collect();
                range.select(&keys, &mut inside);
                if inside.len() != count {
                    return Err(fragment.place("R-tree").corrupt(format!(
                        "{} cells of tile {tile} lie outside its box along {:?}",
                        count - inside.len(),
                        dimension.name
                    )));
                }
            }
        }
        Ok(())
    }
}

/// Cells of a tile.
fn cells(fragment: &Fragment, tile: usize) -> usize {
    let cells = match fragment.schema.kind {
        ArrayKind::Sparse => fragment.sparse_cells(tile),
        ArrayKind::Dense => {
            let extents: Vec<u64> = fragment
                .schema
                .dimensions
                .iter()
                .map(|dimension| dimension.tile_extent().unwrap_or(0))
                .collect();
            product(&extents).unwrap_or(u64::MAX)
        }
    };
    usize::try_from(cells).unwrap_or(usize::MAX)
}

/// Every field that the fragment has files of.
fn fields(fragment: &Fragment, array: &OpenArray) -> Vec<(Field, FieldCodecs)> {
    let (schema, version, key) = (&fragment.schema, fragment.version(), array.options.key.as_ref());
    let mut fields: Vec<(Field, FieldCodecs)> = (0..schema.attributes.len())
        .map(|index| (Field::Attribute(index), FieldCodecs::attribute(schema, index, version, key)))
        .collect();
    if schema.kind == ArrayKind::Sparse && version >= 5 {
        fields.extend(
            (0..schema.dimensions.len())
                .map(|index| (Field::Dimension(index), FieldCodecs::dimension(schema, index, version, key))),
        );
    }
    let times = || FieldCodecs::times(schema, version, key);
    if fragment.footer.has_timestamps {
        fields.push((Field::Timestamps, times()));
    }
    if fragment.footer.has_deletes {
        fields.push((Field::DeleteTimestamps, times()));
        fields.push((Field::DeleteConditions, times()));
    }
    fields
}

/// The cells of a tile that were written, without padding; `None` when the tile cannot be placed.
fn written_cells(
    fragment: &Fragment,
    elements: &Elements,
    attribute: &crate::schema::Attribute,
    tile: usize,
) -> Option<Elements> {
    if fragment.schema.kind == ArrayKind::Sparse {
        return Some(elements.clone());
    }
    let schema = &fragment.schema;
    let (written, tiles) = (fragment.footer.cell_box(schema)?, fragment.footer.tile_box(schema)?);
    let extents: Vec<u64> =
        schema.dimensions.iter().map(|dimension| dimension.tile_extent()).collect::<Option<_>>()?;
    let rank = extents.len();
    let (mut left, mut start) = (tile as u64, vec![0; rank]);
    for step in 0..rank {
        let axis =
            if schema.tile_order == crate::schema::Order::ColumnMajor { step } else { rank - 1 - step };
        let count = tiles[axis].1 - tiles[axis].0 + 1;
        start[axis] = (tiles[axis].0 + left % count).checked_mul(extents[axis])?;
        left /= count;
    }
    let whole = Region::new(&start, &extents);
    let box_start: Vec<u64> = written.iter().map(|(low, _)| *low).collect();
    let box_shape: Vec<u64> = written.iter().map(|(low, high)| high - low + 1).collect();
    let own = whole.intersect(&Region::new(&box_start, &box_shape))?;
    let strides = schema.cell_order.cell_order().strides(&extents);
    let mut picks = Vec::new();
    for cell in 0..own.cells()? {
        let (mut left, mut at) = (cell, 0);
        for axis in (0..rank).rev() {
            at += (own.start[axis] - start[axis] + left % own.shape[axis]) * strides[axis];
            left /= own.shape[axis];
        }
        picks.push((0, usize::try_from(at).ok()?));
    }
    Elements::gather(&attribute.dtype(), &[elements], &picks).ok()
}
