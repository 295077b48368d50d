//! Runs the embedded S3 server.
fn main() {}
