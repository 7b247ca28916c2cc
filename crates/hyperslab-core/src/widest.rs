//! Loops compiled for the widest vectors of the processor.

/// Compiles a function twice: for every processor, and for those with 32-byte vectors. The choice is made at run time. Both
/// versions must give the same bits, so the body must treat each lane independently.
///
/// `widest! { visibility name[generics](arguments) -> result, body }`, where `body` names an always-inlined function of the same
/// signature.
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
