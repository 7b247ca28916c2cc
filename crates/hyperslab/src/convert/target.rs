//! Describes nodes in the terms of the target's format. Conversions and views of other formats share this description.

use std::collections::HashSet;

#[cfg(feature = "zarr")]
use hyperslab_core::{ArraySchema, Positions};
use hyperslab_core::{ArraySpec, Attribute, Attributes, Variant};

use super::ConvertReport;
#[cfg(feature = "zarr")]
use super::labels::PlacedLabels;
use super::spec::{drop_generated_names, fitted_attribute, portable_attributes};
#[cfg(feature = "zarr")]
use crate::forms::CreatedCoordinates;
use crate::{Format, OpenStore};

/// The format of a target, and how the source relates to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TargetFormat {
    format: Format,
    variant: Option<Variant>,
    same_format: bool,
    /// Attributes include the format's bookkeeping, which is kept.
    verbatim: bool,
    /// Attributes keep their types.
    as_is: bool,
    /// The prefix of dimension names that the source's reader generated, and that are not carried over.
    generated_dimension: Option<&'static str>,
}

impl TargetFormat {
    /// The target of nodes of `source`.
    pub(crate) fn new(source: &OpenStore, format: Format, variant: Option<Variant>, verbatim: bool) -> Self {
        let same_format = source.format() == format.name();
        let driver = source.driver().filter(|_| !same_format);
        let generated_dimension = driver.and_then(|format| format.info().generated_dimension);
        Self { format, variant, same_format, verbatim, as_is: verbatim, generated_dimension }
    }

    /// The same, with attributes that keep their types.
    pub(crate) const fn with_types_as_is(mut self, as_is: bool) -> Self {
        self.as_is |= as_is;
        self
    }

    /// The attributes that a node has in the target. Reports those that change and those that are left out.
    pub(crate) fn attributes(
        &self,
        path: &str,
        attributes: &Attributes,
        report: &mut ConvertReport,
    ) -> Attributes {
        let Self { format, variant, verbatim, .. } = *self;
        let portable = portable_attributes(attributes, self.same_format);
        let portable: HashSet<&str> = portable.into_iter().map(|(name, _)| name).collect();
        let mut kept = attributes.filtered(|name, _| verbatim || portable.contains(name));
        let changed = kept.iter().filter_map(|(name, value)| {
            let (value, change) = fitted_attribute(value, format, variant, self.as_is)?;
            Some((name.to_owned(), value, change))
        });
        for (name, value, change) in changed.collect::<Vec<_>>() {
            report.change(path, format!("attribute {name:?} {change}"));
            kept.set(name, value);
        }
        kept.filtered(|name, value| {
            let refused = match value {
                Attribute::Unreadable(reason) => Some(reason.to_string()),
                value => format.driver().refused_attribute(value).map(|reason| reason.to_string()),
            };
            if let Some(reason) = &refused {
                report.drop(path, format!("attribute {name:?} is left out: {reason}"));
            }
            refused.is_none()
        })
    }

    /// Drops the dimension names of an array that the source's reader generated.
    pub(crate) fn drop_generated_names(&self, spec: &mut ArraySpec) {
        if let Some(prefix) = self.generated_dimension {
            drop_generated_names(spec, prefix);
        }
    }

    /// Completes the description of an array of a view, for which these coordinates were created.
    #[cfg(feature = "zarr")]
    pub(crate) fn complete(
        &self,
        path: &str,
        schema: &ArraySchema,
        created: CreatedCoordinates,
        spec: &mut ArraySpec,
    ) {
        spec.labels.clone_from(&schema.labels);
        spec.stored.label = schema.stored.label;
        spec.stored.dimension_types.clone_from(&schema.stored.dimension_types);
        let labels = PlacedLabels::of_view(created, self.same_format);
        labels.place(path, schema, &Positions::whole(schema.shape()), spec);
        self.drop_generated_names(spec);
        spec.attributes = self.attributes(path, &spec.attributes, &mut ConvertReport::default());
    }
}
