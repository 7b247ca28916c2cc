//! Setters of option types.

/// Generates setters for the fields of an options type. Each takes a value and returns the options, so that calls can be chained.
///
/// Options are `#[non_exhaustive]`: create them from their default and change them by setters or fields, so that a new field
/// breaks no caller. A field marked `into` takes a value or an `Option` of one.
///
/// ```
/// #[derive(Debug, Default)]
/// #[non_exhaustive]
/// pub struct CopyOptions {
///     /// Overwrite the target.
///     pub replace: bool,
///     /// The number of bytes at most.
///     pub limit: Option<u64>,
/// }
///
/// hyperslab_core::option_setters! { CopyOptions {
///     with_replace = replace: bool,
///     with_limit = limit: into Option<u64>,
/// } }
///
/// let options = CopyOptions::default().with_replace(true).with_limit(10_u64);
/// assert_eq!((options.replace, options.limit), (true, Some(10)));
/// ```
#[macro_export]
macro_rules! option_setters {
    (@) => {};
    (@ $(#[$attribute:meta])* $setter:ident = $field:ident: into $value:ty, $($rest:tt)*) => {
        $(#[$attribute])*
        #[doc = concat!("Sets [`", stringify!($field), "`](Self::", stringify!($field), ").")]
        #[must_use]
        pub fn $setter(mut self, $field: impl Into<$value>) -> Self {
            self.$field = $field.into();
            self
        }
        $crate::option_setters!(@ $($rest)*);
    };
    (@ $(#[$attribute:meta])* $setter:ident = $field:ident: $value:ty, $($rest:tt)*) => {
        $(#[$attribute])*
        #[doc = concat!("Sets [`", stringify!($field), "`](Self::", stringify!($field), ").")]
        #[must_use]
        pub fn $setter(mut self, $field: $value) -> Self {
            self.$field = $field;
            self
        }
        $crate::option_setters!(@ $($rest)*);
    };
    ($options:ty { $($fields:tt)* }) => {
        impl $options {
            $crate::option_setters!(@ $($fields)*);
        }
    };
}
