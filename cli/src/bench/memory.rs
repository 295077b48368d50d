//! The process's peak of resident memory.
//!
//! `ru_maxrss` of getrusage(2) is no such thing on Linux: exec(2) hands it on, so a process begins with the peak of
//! whoever started it. `VmHWM` of proc_pid_status(5) begins with the program; `ru_maxrss` serves where that file is not.

use std::fs;

use super::usage;
use crate::failure::Failure;

/// In bytes, since the program started.
pub(super) fn peak_resident() -> Result<u64, Failure> {
    match fs::read_to_string("/proc/self/status").ok().as_deref().and_then(high_water) {
        Some(bytes) => Ok(bytes),
        None => {
            // Linux counts it in KiB, macOS in bytes (getrusage(2) of each).
            let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
            Ok(u64::try_from(usage()?.max_rss()).unwrap_or(0) * unit)
        }
    }
}

/// The line `VmHWM:     12345 kB`, whose kB are 1,024 bytes.
fn high_water(status: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_high_water_mark_is_read() {
        assert_eq!(high_water("VmPeak:\t  999 kB\nVmHWM:\t    1536 kB\nVmRSS:\t 4 kB\n"), Some(1_572_864));
        for status in ["", "VmRSS:\t 4 kB\n", "VmHWM:\t kB\n", "VmHWM:\t 4 MB\n"] {
            assert_eq!(high_water(status), None, "{status:?}");
        }
    }
}
