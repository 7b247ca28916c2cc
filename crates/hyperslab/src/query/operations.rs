//! The table of operations, used by the command line, the query documents and Python.

use hyperslab_core::{DType, Number};
use serde::{Deserialize, Serialize};

use super::fold::{
    AnyFold, Arg, Count, FloatExtreme, FloatProduct, FloatSum, Histogram, IntegerExtreme, IntegerProduct,
    IntegerSum, Moments, Tally, Values,
};
use super::operand::KeyKind;
use super::plan::QueryPlan;

/// An operation on values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Operation {
    /// The number of values.
    Count,
    /// The sum; exact for integers.
    Sum,
    /// The mean.
    Mean,
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
    /// The variance: the sum of squared deviations from the mean, divided by the count minus `ddof`.
    Var {
        /// Delta degrees of freedom: 0 for a population, 1 for a sample.
        ddof: u32,
    },
    /// The square root of the variance.
    Std {
        /// As for the variance.
        ddof: u32,
    },
    /// The product; exact for integers if it fits.
    Product,
    /// The sum of absolute values.
    NormL1,
    /// The square root of the sum of squares.
    NormL2,
    /// The position of the smallest value among those reduced together, in C order; the first of several.
    ArgMin,
    /// The position of the largest value.
    ArgMax,
    /// The median.
    Median,
    /// The quantile at this share, interpolated between neighbours.
    Quantile(f64),
    /// Counts in bins of equal width, the last one closed.
    Histogram {
        /// The number of bins.
        bins: usize,
        /// The range; that of all values by default.
        range: Option<(f64, f64)>,
        /// Whether values outside the range count in the outer bins, or not at all.
        clamp: bool,
    },
    /// Whether every value is finite.
    AllFinite,
    /// Whether any value is NaN.
    AnyNan,
    /// Whether any value is infinite.
    AnyInf,
    /// The number of NaN values.
    NanCount,
    /// The number of infinite values.
    InfCount,
    /// The number of missing values, compared by bits with the given marker or the array's own.
    NullCount {
        /// The missing value.
        fill: Option<f64>,
    },
}

/// Parameters of operations. Each operation uses its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameters {
    /// Delta degrees of freedom of a variance.
    pub ddof: u32,
    /// The share of a quantile.
    pub q: f64,
    /// The bins of a histogram.
    pub bins: usize,
    /// The range of a histogram.
    pub range: Option<(f64, f64)>,
    /// Whether values outside the range of a histogram count in its outer bins.
    pub clamp: bool,
    /// The missing value.
    pub fill: Option<f64>,
}

impl Default for Parameters {
    fn default() -> Self {
        Self { ddof: 0, q: 0.5, bins: 10, range: None, clamp: false, fill: None }
    }
}

/// A row of the table of operations.
#[derive(Debug, Clone, Copy)]
pub struct OperationInfo {
    /// Its name in query documents and in Python.
    pub name: &'static str,
    /// Its option on the command line, without dashes.
    pub flag: &'static str,
    /// Its other names in Python.
    pub aliases: &'static [&'static str],
    /// A short description.
    pub summary: &'static str,
    /// Whether it requires a parameter.
    pub parametric: bool,
    make: fn(&Parameters) -> Operation,
    answers: Answers,
    /// Whether it applies to dates and durations.
    of_times: bool,
    /// Whether it handles NaN itself. Otherwise NaNs to be skipped are removed before it.
    sees_nan: bool,
    /// Whether query documents skip NaN.
    pub(super) skips_nan_in_documents: bool,
    fold: fn(&QueryPlan, Operation) -> AnyFold,
}

/// The type of an operation's answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answers {
    /// Counts and positions.
    Counts,
    /// True or false.
    Flags,
    /// The array's type.
    Elements,
    /// Floats for floats, and integers as wide as needed for integers.
    Numbers,
    Floats,
}

/// A row of the table, with the most common settings.
const fn row(
    (name, flag): (&'static str, &'static str),
    summary: &'static str,
    answers: Answers,
    make: fn(&Parameters) -> Operation,
    fold: fn(&QueryPlan, Operation) -> AnyFold,
) -> OperationInfo {
    OperationInfo {
        name,
        flag,
        aliases: &[],
        summary,
        parametric: false,
        make,
        answers,
        of_times: false,
        sees_nan: false,
        skips_nan_in_documents: false,
        fold,
    }
}

/// A minimum or maximum, or its position.
const fn end(info: OperationInfo, aliases: &'static [&'static str]) -> OperationInfo {
    OperationInfo { aliases, of_times: true, sees_nan: true, skips_nan_in_documents: true, ..info }
}

/// An operation that handles NaN itself.
const fn sees_nan(info: OperationInfo) -> OperationInfo {
    OperationInfo { sees_nan: true, ..info }
}

/// An order statistic or histogram, which requires a parameter.
const fn parametric(info: OperationInfo) -> OperationInfo {
    OperationInfo { parametric: true, ..sees_nan(info) }
}

/// The reduction for floats, or that for integers.
fn by_kind(plan: &QueryPlan, floats: AnyFold, integers: AnyFold) -> AnyFold {
    if plan.key_kind() == KeyKind::Float { floats } else { integers }
}

fn sum(plan: &QueryPlan, _: Operation) -> AnyFold {
    by_kind(plan, AnyFold::Sum(FloatSum::default()), AnyFold::IntegerSum(IntegerSum::default()))
}

fn min(plan: &QueryPlan, _: Operation) -> AnyFold {
    by_kind(plan, AnyFold::Min(FloatExtreme::default()), AnyFold::IntegerMin(IntegerExtreme::default()))
}

fn values(plan: &QueryPlan, _: Operation) -> AnyFold {
    AnyFold::Values(Values::new(plan.skip_nan))
}

fn tally(plan: &QueryPlan, operation: Operation) -> AnyFold {
    let Operation::NullCount { fill } = operation else { return AnyFold::Tally(Tally::default()) };
    let markers = match fill {
        Some(fill) => vec![Number::Float(fill)],
        None if plan.markers.is_empty() => plan.fill.into_iter().collect(),
        None => plan.markers.clone(),
    };
    AnyFold::Tally(Tally::new(markers.into_iter().map(|marker| plan.fill_bits(marker)).collect()))
}

/// All operations.
pub static OPERATIONS: &[OperationInfo] = &[
    OperationInfo {
        of_times: true,
        ..row(
            ("count", "count"),
            "Number of values",
            Answers::Counts,
            |_| Operation::Count,
            |_, _| AnyFold::Count(Count),
        )
    },
    row(
        ("sum", "sum"),
        "Sum; exact for integers, compensated for floats",
        Answers::Numbers,
        |_| Operation::Sum,
        sum,
    ),
    row(("mean", "mean"), "Mean", Answers::Floats, |_| Operation::Mean, sum),
    end(row(("min", "min"), "Smallest value", Answers::Elements, |_| Operation::Min, min), &[]),
    end(
        row(
            ("max", "max"),
            "Largest value",
            Answers::Elements,
            |_| Operation::Max,
            |plan, _| {
                by_kind(
                    plan,
                    AnyFold::Max(FloatExtreme::default()),
                    AnyFold::IntegerMax(IntegerExtreme::default()),
                )
            },
        ),
        &[],
    ),
    row(
        ("var", "var"),
        "Variance",
        Answers::Floats,
        |own| Operation::Var { ddof: own.ddof },
        |_, _| AnyFold::Moments(Moments::default()),
    ),
    row(
        ("std", "std"),
        "Standard deviation",
        Answers::Floats,
        |own| Operation::Std { ddof: own.ddof },
        |_, _| AnyFold::Moments(Moments::default()),
    ),
    OperationInfo {
        aliases: &["prod"],
        ..row(
            ("product", "product"),
            "Product",
            Answers::Numbers,
            |_| Operation::Product,
            |plan, _| {
                by_kind(
                    plan,
                    AnyFold::Product(FloatProduct::default()),
                    AnyFold::IntegerProduct(IntegerProduct::default()),
                )
            },
        )
    },
    row(
        ("norm_l1", "norm-l1"),
        "Sum of absolute values",
        Answers::Numbers,
        |_| Operation::NormL1,
        |plan, _| by_kind(plan, AnyFold::L1(FloatSum::default()), AnyFold::IntegerL1(IntegerSum::default())),
    ),
    row(
        ("norm_l2", "norm-l2"),
        "Square root of the sum of squares",
        Answers::Floats,
        |_| Operation::NormL2,
        |_, _| AnyFold::L2(FloatSum::default()),
    ),
    end(
        row(
            ("arg_min", "argmin"),
            "Position of the smallest value",
            Answers::Counts,
            |_| Operation::ArgMin,
            |plan, _| AnyFold::ArgMin(Arg::new(plan.skip_nan)),
        ),
        &["argmin"],
    ),
    end(
        row(
            ("arg_max", "argmax"),
            "Position of the largest value",
            Answers::Counts,
            |_| Operation::ArgMax,
            |plan, _| AnyFold::ArgMax(Arg::new(plan.skip_nan)),
        ),
        &["argmax"],
    ),
    sees_nan(row(("median", "median"), "Median", Answers::Floats, |_| Operation::Median, values)),
    parametric(row(
        ("quantile", "quantile"),
        "Quantile, between 0 and 1",
        Answers::Floats,
        |own| Operation::Quantile(own.q),
        values,
    )),
    parametric(row(
        ("histogram", "histogram"),
        "Histogram",
        Answers::Counts,
        |own| Operation::Histogram { bins: own.bins, range: own.range, clamp: own.clamp },
        |plan, operation| match operation {
            Operation::Histogram { bins, range: Some(range), clamp } => {
                AnyFold::Histogram(Histogram::new(bins, range, clamp))
            }
            // The range is found first.
            other => min(plan, other),
        },
    )),
    sees_nan(row(
        ("all_finite", "all-finite"),
        "Whether every value is finite",
        Answers::Flags,
        |_| Operation::AllFinite,
        tally,
    )),
    sees_nan(row(
        ("any_nan", "any-nan"),
        "Whether any value is NaN",
        Answers::Flags,
        |_| Operation::AnyNan,
        tally,
    )),
    row(
        ("any_inf", "any-inf"),
        "Whether any value is infinite",
        Answers::Flags,
        |_| Operation::AnyInf,
        tally,
    ),
    sees_nan(row(
        ("nan_count", "nan-count"),
        "Number of NaN values",
        Answers::Counts,
        |_| Operation::NanCount,
        tally,
    )),
    row(
        ("inf_count", "inf-count"),
        "Number of infinite values",
        Answers::Counts,
        |_| Operation::InfCount,
        tally,
    ),
    OperationInfo {
        of_times: true,
        ..row(
            ("null_count", "null-count"),
            "Number of missing values",
            Answers::Counts,
            |own| Operation::NullCount { fill: own.fill },
            tally,
        )
    },
];

impl OperationInfo {
    /// The operation with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        OPERATIONS.iter().find(|own| own.name == name || own.aliases.contains(&name))
    }

    /// The operation with these parameters.
    #[must_use]
    pub fn operation(&self, parameters: &Parameters) -> Operation {
        (self.make)(parameters)
    }
}

impl Operation {
    /// Its row in the table.
    #[must_use]
    pub fn info(self) -> &'static OperationInfo {
        let kind = std::mem::discriminant(&self);
        let own =
            |info: &&OperationInfo| std::mem::discriminant(&info.operation(&Parameters::default())) == kind;
        OPERATIONS.iter().find(own).unwrap_or(&OPERATIONS[0])
    }

    /// Its name on the command line and in documents.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// Returns true if it asks about NaN or missing markers, so that stored values are meant.
    #[must_use]
    pub const fn is_about_stored_values(self) -> bool {
        matches!(self, Self::AllFinite | Self::AnyNan | Self::NanCount)
    }

    /// Returns true if it applies to elements of this type.
    pub(super) fn applies_to(self, dtype: &DType) -> bool {
        self.info().of_times || !matches!(dtype, DType::DateTime(_) | DType::Duration(_))
    }

    /// Returns true if it handles NaN itself.
    pub(super) fn sees_nan(self) -> bool {
        self.info().sees_nan
    }

    /// Returns true if its answers for values of this kind are integers.
    pub(super) fn is_integral(self, values: KeyKind) -> bool {
        match self.info().answers {
            Answers::Floats => false,
            Answers::Numbers | Answers::Elements => values != KeyKind::Float,
            Answers::Counts | Answers::Flags => true,
        }
    }

    /// The type of its answers for elements of this type.
    pub(super) fn dtype(self, elements: &DType) -> DType {
        match self.info().answers {
            Answers::Elements => elements.clone(),
            Answers::Flags => DType::Bool,
            Answers::Counts => DType::UInt64,
            Answers::Numbers | Answers::Floats => DType::Float64,
        }
    }

    /// The fold of the first pass over the values.
    pub(super) fn fold(self, plan: &QueryPlan) -> AnyFold {
        (self.info().fold)(plan, self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_its_own_row() {
        for (number, info) in OPERATIONS.iter().enumerate() {
            let operation = info.operation(&Parameters::default());
            assert_eq!(operation.info().name, info.name);
            for name in info.aliases.iter().chain([&info.name]) {
                assert_eq!(OperationInfo::named(name).map(|own| own.name), Some(info.name));
                assert!(
                    OPERATIONS[..number].iter().all(|own| own.name != *name && !own.aliases.contains(name))
                );
            }
        }
    }
}
