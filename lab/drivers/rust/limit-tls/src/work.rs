//! A round's requests, rendered once, and the memory that their bodies land in or come from.

use std::ops::Range;

use anyhow::{Context, Result, bail, ensure};
use memmap2::{Advice, MmapMut};

use crate::{Mode, Options, Sink};

/// One request: its head, the status that must come, and its bytes in the memory.
pub struct Request {
    pub head: Vec<u8>,
    pub status: u16,
    /// Where the body lands (get) or comes from (put).
    pub place: Range<usize>,
}

/// All requests of a round.
pub struct Work {
    pub mode: Mode,
    pub requests: Vec<Request>,
    pub memory: MmapMut,
    /// Bodies are received into a side buffer, and dropped.
    pub discard: bool,
    pub host: String,
    pub port: u16,
}

impl Work {
    pub fn prepare(options: &Options) -> Result<Work> {
        let (host, port) = authority(&options.endpoint)?;
        for name in [&options.bucket, &options.key] {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-._~/".contains(c);
            ensure!(name.chars().all(plain), "\"{name}\" would need escaping in a request line; use plain names");
        }
        let size = usize::try_from(options.size)?;
        let part = usize::try_from(options.part)?;
        let path = format!("/{}/{}", options.bucket, options.key);
        let requests = (0..size).step_by(part).enumerate().map(|(n, start)| {
            let place = start..size.min(start + part);
            let (status, head) = match options.mode {
                Mode::Get => {
                    let range = format!("range: bytes={}-{}", place.start, place.end - 1);
                    (206, format!("GET {path} HTTP/1.1\r\nhost: {host}:{port}\r\n{range}\r\n\r\n"))
                }
                Mode::Put => {
                    let length = format!("content-length: {}", place.len());
                    (200, format!("PUT {path}{n} HTTP/1.1\r\nhost: {host}:{port}\r\n{length}\r\n\r\n"))
                }
            };
            Request { head: head.into_bytes(), status, place }
        });
        let requests = requests.collect();
        let discard = options.mode == Mode::Get && options.sink == Sink::Discard;
        let mut memory = MmapMut::map_anon(if discard { 1 } else { size }).context("can't map memory")?;
        // Small pages serve as well, only dearer.
        let _ = memory.advise(Advice::HugePage);
        fill(&mut memory);
        Ok(Work { mode: options.mode, requests, memory, discard, host, port })
    }
}

/// A pattern that differs from page to page, so that a misplaced part shows.
fn fill(memory: &mut [u8]) {
    for (word, number) in memory.chunks_exact_mut(8).zip(1_u64..) {
        word.copy_from_slice(&number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes());
    }
}

fn authority(endpoint: &str) -> Result<(String, u16)> {
    let found = endpoint.strip_prefix("https://").and_then(|rest| rest.split_once(':'));
    let Some((host, port)) = found.filter(|(host, _)| !host.is_empty()) else {
        bail!("--endpoint must be https://HOST:PORT, not {endpoint}")
    };
    let port = port.trim_end_matches('/').parse().with_context(|| format!("the port of {endpoint}"))?;
    Ok((host.to_owned(), port))
}
