//! wirespeed: S3 at the speed of the wire.
