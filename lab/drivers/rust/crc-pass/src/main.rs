//! A bare pass of CRC64NVME over memory: the least that checking as many bytes can cost once they have
//! left the cache. The CRC is crc-fast's, which the engine also uses.

use anyhow::{Context, Result};
use clap::Parser;
use memmap2::{Advice, MmapMut};
use protocol::{Moved, Steps, bytes};
use serde_json::json;

/// CRC64NVME over memory, part by part.
#[derive(Parser, Debug)]
struct Options {
    /// Bytes in all
    #[arg(long, value_parser = bytes)]
    size: u64,
    /// Bytes that one checksum is of
    #[arg(long, value_parser = bytes, default_value = "8MiB")]
    part: u64,
    /// Rounds in this process
    #[arg(long, default_value_t = 1)]
    rounds: u32,
    /// Print `ready`, then run one round for each `go` on standard input
    #[arg(long)]
    step: bool,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let mut memory = MmapMut::map_anon(usize::try_from(options.size)?).context("can't map memory")?;
    // Small pages serve as well, only dearer.
    let _ = memory.advise(Advice::HugePage);
    for (n, word) in memory.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&n.to_le_bytes());
    }
    let part = usize::try_from(options.part)?.max(1);
    let head = json!({ "operation": "crc64nvme", "config": { "size": options.size, "part": part } });
    Steps { step: options.step, rounds: options.rounds }.run(head, || {
        let (mut parts, mut all) = (0, 0);
        for part in memory.chunks(part) {
            all ^= crc_fast::crc64_nvme(part);
            parts += 1;
        }
        std::hint::black_box(all);
        Ok(Moved { bytes: options.size, objects: 1, requests: parts, reconnects: 0 })
    })
}
