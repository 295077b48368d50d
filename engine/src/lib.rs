//! wirespeed: S3 at the speed of the wire.

#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod buffer;
#[cfg(not(feature = "internals"))]
#[allow(unreachable_pub)] // Public where `internals` opens the room.
mod buffer;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod plan;
#[cfg(not(feature = "internals"))]
#[allow(unreachable_pub)]
mod plan;
