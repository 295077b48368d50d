//! The wirespeed command line.
fn main() {}
