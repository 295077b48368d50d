//! Everything that is text on the wire, without any IO.
//!
//! Owns the bytes of the protocol: request heads and their signatures, response heads, the chunked
//! transfer coding, and the XML documents of S3. Knows no socket, no runtime and no clock: time is
//! passed in, bytes are passed in, bytes come out.
//!
//! Refuses what would be dangerous to guess at: a header that could smuggle another one, a body with two
//! lengths, a listing that stops before it says it is complete. What it can't read it calls an error and
//! never a shorter answer.
//!
//! Out: [`request::write_request`] appends a head to the connection's scratch; the body is another slice
//! of the same vectored write and never passes through here. In: [`response::parse_response`] borrows
//! from the receive buffer and says how long the head was; body bytes go to their destination by the
//! length it found, or through [`chunked::ChunkedDecoder`]; the small documents are then parsed whole by
//! [`xml`].

// `pub` here means "for the rooms above", and with the feature also for benchmarks and fuzzing. What only
// these and later verbs use counts as used.
#![cfg_attr(not(feature = "internals"), allow(unreachable_pub, dead_code, unused_imports))]

pub mod checksum;
pub mod chunked;
pub mod etag;
pub mod presign;
pub mod request;
pub mod response;
pub mod sign;
pub mod trailer;
pub mod uri;
pub mod xml;
