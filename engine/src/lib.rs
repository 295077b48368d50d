//! wirespeed: S3 at the speed of the wire.

#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod wire;
#[cfg(not(feature = "internals"))]
mod wire;
