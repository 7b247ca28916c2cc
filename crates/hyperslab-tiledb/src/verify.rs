//! Checks that everything in the footers exists, that every tile decodes, and that boxes and statistics are correct.

mod boxes;
mod statistics;
mod tiles;

use std::sync::Arc;

use hyperslab_core::{Depth, Error, Report, Result, Store, check_fetched_in_order, counted};

use crate::array::OpenArray;
use crate::field::FieldCodecs;
use crate::fragment::{Field, FieldPart, Fragment, List};
use crate::schema::ArrayKind;
use crate::stale::{self, Stale};
use crate::store::TileDbStore;
use boxes::Boxes;
use tiles::Tiles;

/// The maximum number of findings of each check per array, so that a damaged file does not flood the report.
const MAX_FINDINGS: usize = 20;

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
            self.report.passed("tiles", format!("{tiles} {what} in {}", counted(count as u64, "fragment")));
        }
    }

    fn fail(&mut self, check: &'static str, error: &Error) {
        self.problems += 1;
        if self.problems <= MAX_FINDINGS {
            self.report.failure(check, error);
        }
    }

    /// Checks every schema, not only the current one, because each fragment names its own.
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
        self.report.passed("schema", counted(names.len().max(1) as u64, "schema"));
    }

    /// Checks for uncommitted fragments, commits without a fragment, and vacuum lists of missing fragments.
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
        self.report.passed("commits", counted(commits.fragments.len() as u64, "fragment") + " committed");
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

    /// Checks every field of a fragment. Returns the number of tiles.
    fn fragment(&mut self, fragment: &Fragment) -> u64 {
        if fragment.schema.kind == ArrayKind::Dense
            && fragment.footer.domain.is_some()
            && fragment.footer.cell_box(&fragment.schema).is_none()
        {
            let error = fragment
                .place("fragment footer")
                .corrupt("the non-empty domain lies outside the array's domain");
            self.fail("non_empty_domain", &error);
            return 0;
        }
        if let Err(error) = fragment.processed_conditions() {
            self.fail("processed_conditions", &error);
        }
        if let Err(error) = fragment.totals() {
            self.fail("fragment_statistics", &error);
        }
        let sparse = fragment.schema.kind == ArrayKind::Sparse;
        let tree = sparse.then(|| boxes::tree(fragment));
        let (mut tiles, mut outside) = (0, Vec::new());
        for (field, codecs) in fields(fragment, self.array) {
            let boxes = match (field, &tree) {
                (Field::Dimension(index), Some(Ok(tree))) => {
                    Some(Boxes::new(fragment, Arc::clone(tree), index))
                }
                _ => None,
            };
            match self.field(fragment, field, &codecs, boxes, &mut outside) {
                Ok(count) => tiles += count,
                Err(error) => self.fail("tiles", &error),
            }
        }
        if let Some(Err(error)) = &tree {
            self.fail("rtree", error);
        }
        outside.iter().for_each(|error| self.fail("rtree", error));
        tiles
    }

    /// Checks file sizes and offsets; in a deep check also every tile, its statistics and, for a dimension, its box.
    fn field(
        &mut self,
        fragment: &Fragment,
        field: Field,
        codecs: &FieldCodecs,
        boxes: Option<Boxes<'_>>,
        outside: &mut Vec<Error>,
    ) -> Result<u64> {
        let mut parts = vec![FieldPart::Fixed];
        if codecs.offsets.is_some() {
            parts.push(FieldPart::Values);
        }
        if codecs.validity.is_some() {
            parts.push(FieldPart::Validity);
        }
        let count = fragment.list(List::TileOffsets, field)?.len();
        for part in &parts {
            let file = fragment.file(field, *part);
            let stated = fragment.file_size(field, *part).unwrap_or(0);
            let found = self.array.directory.size(&file)?;
            if found != Some(stated) {
                let problem = format!("the footer gives {stated} bytes for {file}, but it has {found:?}");
                return Err(fragment.place("fragment footer").corrupt(problem));
            }
            let offsets = fragment.list(part.offsets(), field)?;
            for tile in 0..count {
                fragment.span_among(&offsets, field, *part, tile)?;
            }
        }
        if self.depth == Depth::Deep {
            let tiles = Tiles::open(self.array, fragment, field, codecs, &parts, boxes)?;
            let walk = |put: &mut dyn FnMut(usize)| {
                (0..count).for_each(put);
                Ok(())
            };
            let fetch = tiles.is_remote().then_some(|group: &[usize]| tiles.fetch(group));
            check_fetched_in_order(
                tiles.weight(),
                walk,
                |tile| tiles.stored_bytes(*tile),
                fetch,
                |tile, stored| tiles.check(tile, stored),
                |seen| match seen {
                    Ok(seen) => {
                        // A warning only: the library itself includes padding in these statistics when it
                        // consolidates.
                        seen.statistics
                            .into_iter()
                            .for_each(|problem| self.report.warning("statistics", problem));
                        outside.extend(seen.outside);
                    }
                    Err(error) => self.fail("tiles", &error),
                },
            )?;
        }
        Ok(count as u64)
    }
}

/// Every field for which the fragment has files.
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
