//! An embedded S3 server.
