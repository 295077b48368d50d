//! Sizes, rates and durations as a person writes and reads them.
//!
//! Reading is the engine's way: `KiB MiB GiB TiB` are powers of 1,024, `KB MB GB TB` powers of 1,000, a bare number is
//! bytes.

use std::fmt;
use std::time::Duration;

/// Reads a size in bytes.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let size = text.parse::<bytesize::ByteSize>();
    size.map(|size| size.as_u64())
        .map_err(|_| format!("`{text}` is not a size; write bytes or a unit, as in 8MiB (2^20), 5MB (10^6) or 1000"))
}

/// Bytes in binary units with one decimal, as `aws s3 ls --human-readable` has them: `10 Bytes`, `1.5 KiB`.
pub(crate) struct Size(pub(crate) u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => return f.pad("1 Byte"),
            bytes @ 0..1024 => return f.pad(&format!("{bytes} Bytes")),
            _ => {}
        }
        let mut value = self.0 as f64;
        let mut unit = "";
        for next in ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] {
            value /= 1024.0;
            unit = next;
            // What would round to 1024.0 is shown as 1.0 of the next unit.
            if value < 1023.95 {
                break;
            }
        }
        f.pad(&format!("{value:.1} {unit}"))
    }
}

/// Bytes a second, `0` when no time has passed.
pub(crate) fn rate(bytes: u64, elapsed: Duration) -> f64 {
    let seconds = elapsed.as_secs_f64();
    if seconds > 0.0 { bytes as f64 / seconds } else { 0.0 }
}

/// A duration with the precision that its size deserves: `3.2 ms`, `1.25 s`, `2 min 5 s`.
pub(crate) struct Elapsed(pub(crate) Duration);

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs_f64();
        let whole = self.0.as_secs();
        f.pad(&match whole {
            0 => format!("{:.1} ms", seconds * 1e3),
            1..10 => format!("{seconds:.2} s"),
            10..100 => format!("{seconds:.1} s"),
            100..3600 => format!("{} min {} s", whole / 60, whole % 60),
            _ => format!("{} h {} min", whole / 3600, whole / 60 % 60),
        })
    }
}

/// A number with commas between its thousands: `20,000`.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 object`, `20,000 objects`.
pub(crate) fn objects(number: u64) -> String {
    format!("{} object{}", thousands(number), if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        for (text, bytes) in [("0", 0), ("1000", 1000), ("8MiB", 8 << 20), ("5MB", 5_000_000), ("1.5 GiB", 3 << 29)] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "-1", "MiB", "8MiBs", "1e6", "1.2.3M", "nan"] {
            assert!(parse_size(text).unwrap_err().contains("8MiB"), "{text}");
        }
    }

    #[test]
    fn sizes_are_shown() {
        for (bytes, text) in [
            (0, "0 Bytes"),
            (1, "1 Byte"),
            (1023, "1023 Bytes"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            ((1 << 20) - 1, "1.0 MiB"),
            (3 << 29, "1.5 GiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(Size(bytes).to_string(), text);
        }
        assert_eq!(format!("{:>10}", Size(1536)), "   1.5 KiB");
    }

    #[test]
    fn durations_and_rates_are_shown() {
        assert_eq!(Elapsed(Duration::from_micros(3210)).to_string(), "3.2 ms");
        assert_eq!(Elapsed(Duration::from_millis(1250)).to_string(), "1.25 s");
        assert_eq!(Elapsed(Duration::from_secs(125)).to_string(), "2 min 5 s");
        assert_eq!(Elapsed(Duration::from_secs(7260)).to_string(), "2 h 1 min");
        assert_eq!(rate(100, Duration::ZERO), 0.0);
        assert_eq!(rate(100, Duration::from_millis(500)), 200.0);
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(objects(1), "1 object");
        assert_eq!(objects(1_234_567), "1,234,567 objects");
    }
}
