//! Points in time as a person writes them: an age before now, a date, or an instant.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

/// Reads `7d`, `12h`, `1w2d` (that long ago), `2026-01-31` or `2026-01-31T12:00` (of this machine's zone), or an instant
/// of RFC 3339, as `2026-01-31T12:00:00Z`.
pub(crate) fn parse_moment(text: &str) -> Result<Timestamp, String> {
    moment(text, Timestamp::now(), &TimeZone::system()).ok_or_else(|| {
        format!("`{text}` is neither an age nor a time; write it as 7d, 12h, 2026-01-31 or 2026-01-31T12:00:00Z")
    })
}

fn moment(text: &str, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    if let Ok(instant) = text.parse::<Timestamp>() {
        return Some(instant);
    }
    if let Ok(local) = text.parse::<DateTime>() {
        return zone.to_timestamp(local).ok();
    }
    let age: Span = text.parse().ok().filter(|age: &Span| !age.is_negative())?;
    // Days of 24 hours, whatever clocks were put forward meanwhile.
    now.to_zoned(TimeZone::UTC).checked_sub(age).ok().map(|then| then.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_and_times() {
        let now: Timestamp = "2026-03-31T12:00:00Z".parse().unwrap();
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        for (text, expected) in [
            ("0s", "2026-03-31T12:00:00Z"),
            ("7d", "2026-03-24T12:00:00Z"),
            ("1w", "2026-03-24T12:00:00Z"),
            ("1d12h", "2026-03-30T00:00:00Z"),
            ("90m", "2026-03-31T10:30:00Z"),
            ("1y", "2025-03-31T12:00:00Z"),
            ("2026-01-31", "2026-01-30T22:00:00Z"),
            ("2026-01-31T12:00", "2026-01-31T10:00:00Z"),
            ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z"),
            ("2026-01-31T12:00:00.5+01:00", "2026-01-31T11:00:00.5Z"),
        ] {
            assert_eq!(moment(text, now, &zone), Some(expected.parse().unwrap()), "{text}");
        }
        for wrong in ["", "7", "d", "-1d", "soon", "2026-13-01", "99999999999y"] {
            assert_eq!(moment(wrong, now, &zone), None, "{wrong}");
        }
    }
}
