//! The server, asked over a socket by a client that shares no code with it or with the engine.

// The client below is test code too, but not inside a test function, which is all that clippy goes by.
#![allow(clippy::unwrap_used, clippy::panic)]

mod attributes;
mod client;
mod conditions;
mod directory;
mod documentation;
mod documents;
mod faults;
mod listing;
mod model;
mod multipart;
mod objects;
mod operation;
mod patience;
mod signatures;
mod synthetic;
mod tls;
mod versions;
