//! Loops for the widest vectors that a processor has.

/// A function compiled twice: for every processor, and for those with vectors of 32 bytes, which is found out when it is
/// called. Both do the same to each lane, and give the same bits: what runs in them must not depend on more than that.
///
/// `widest! { visibility name[generics](arguments) -> result, body }`, where `body` is the name of a function of the same
/// signature that is inlined always.
///
/// ```
/// # #![deny(unsafe_code)]
/// hyperslab_core::widest! {
///     /// The sum of all.
///     pub(crate) sum[](values: &[u32]) -> u32, sum_here
/// }
///
/// #[inline(always)]
/// fn sum_here(values: &[u32]) -> u32 {
///     values.iter().fold(0, |sum, value| sum.wrapping_add(*value))
/// }
///
/// # fn main() {
/// assert_eq!(sum(&[1, 2, 3]), 6);
/// # }
/// ```
#[macro_export]
macro_rules! widest {
    ($(#[$doc:meta])* $visible:vis $name:ident[$($generics:tt)*]($($argument:ident: $type:ty),*) $(-> $out:ty)?, $here:ident) => {
        $(#[$doc])*
        #[expect(unsafe_code, reason = "a call of code for a detected processor")]
        $visible fn $name<$($generics)*>($($argument: $type),*) $(-> $out)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn wide<$($generics)*>($($argument: $type),*) $(-> $out)? {
                    $here($($argument),*)
                }
                if std::arch::is_x86_feature_detected!("avx2") {
                    // SAFETY: this processor has the vectors that the code is compiled for.
                    return unsafe { wide($($argument),*) };
                }
            }
            $here($($argument),*)
        }
    };
}
