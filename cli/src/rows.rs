//! Rows of a listing: times, sizes and keys, put straight into the output's buffer.
//!
//! Ten million rows are printed by one command, so a row takes no memory of its own, no lock and no general formatting:
//! the zone is asked once for as long as its offset holds, a date is made once a day of the listing, and a key is
//! looked through for control characters many bytes at a time.

use std::ops::Range;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::failure::visible;
use crate::units::Size;

/// Columns of a time, also of one that the server did not tell.
const TIME_WIDTH: usize = 19;

/// Columns of a size in `ls`, as `aws s3 ls` has them.
pub(crate) const SIZE_WIDTH: usize = 10;

/// Writes times as `2026-01-31 12:00:00` in one zone.
pub(crate) struct Clock {
    zone: TimeZone,
    /// Seconds since 1970 between two changes of the offset, and the offset in seconds.
    steady: Range<i64>,
    offset: i64,
    /// The day whose date is at hand, in days since 1970 of the zone's clock.
    day: i64,
    date: String,
}

impl Clock {
    /// The zone of this machine.
    pub(crate) fn local() -> Clock {
        Clock::of(TimeZone::system())
    }

    fn of(zone: TimeZone) -> Clock {
        Clock { zone, steady: 0..0, offset: 0, day: i64::MIN, date: String::new() }
    }

    /// Adds the time, 19 columns; blanks where the server gave none.
    pub(crate) fn push(&mut self, time: Option<Timestamp>, row: &mut Vec<u8>) {
        let Some(time) = time else { return row.resize(row.len() + TIME_WIDTH, b' ') };
        let second = time.as_second();
        if !self.steady.contains(&second) {
            self.ask_zone(time);
        }
        let local = second + self.offset;
        let (day, of_day) = (local.div_euclid(86_400), local.rem_euclid(86_400));
        if day != self.day {
            self.day = day;
            self.date = self.zone.to_datetime(time).date().to_string();
        }
        row.extend_from_slice(self.date.as_bytes());
        let two = |number: i64| [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        let ([h1, h2], [m1, m2], [s1, s2]) = (two(of_day / 3600), two(of_day / 60 % 60), two(of_day % 60));
        row.extend_from_slice(&[b' ', h1, h2, b':', m1, m2, b':', s1, s2]);
    }

    fn ask_zone(&mut self, time: Timestamp) {
        self.offset = i64::from(self.zone.to_offset(time).seconds());
        let since = time.checked_add(jiff::Span::new().nanoseconds(1)).unwrap_or(time);
        let since = self.zone.preceding(since).next().map_or(i64::MIN, |change| change.timestamp().as_second());
        let until = self.zone.following(time).next().map_or(i64::MAX, |change| change.timestamp().as_second());
        self.steady = since..until;
    }
}

/// Adds bytes as `ls` shows them, to the right of their column.
pub(crate) fn push_size(bytes: u64, human_readable: bool, width: usize, row: &mut Vec<u8>) {
    if human_readable {
        push_right(&Size(bytes).to_string(), width, row);
    } else {
        push_right(itoa::Buffer::new().format(bytes), width, row);
    }
}

/// Adds the text to the right of a column.
pub(crate) fn push_right(text: &str, width: usize, row: &mut Vec<u8>) {
    row.resize(row.len() + width.saturating_sub(text.len()), b' ');
    row.extend_from_slice(text.as_bytes());
}

/// Adds the text with its control characters spelled out.
pub(crate) fn push_visible(text: &str, row: &mut Vec<u8>) {
    // Control characters are bytes below a blank, DEL, or begin with 0xc2: no branch, so many bytes are compared at once.
    let odd = |byte: u8| (byte < 0x20) | (byte == 0x7f) | (byte == 0xc2);
    if text.bytes().fold(false, |any, byte| any | odd(byte)) {
        row.extend_from_slice(visible(text).as_bytes());
    } else {
        row.extend_from_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn zurich() -> TimeZone {
        TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
    }

    fn shown(clock: &mut Clock, second: i64) -> String {
        let mut row = Vec::new();
        clock.push(Some(Timestamp::from_second(second).unwrap()), &mut row);
        String::from_utf8(row).unwrap()
    }

    fn expected(second: i64, zone: &TimeZone) -> String {
        let time = Timestamp::from_second(second).unwrap().to_zoned(zone.clone());
        time.strftime("%Y-%m-%d %H:%M:%S").to_string()
    }

    #[test]
    fn times_around_a_change_of_the_clock() {
        // 2026-03-29 01:00 UTC and 2026-10-25 01:00 UTC.
        let mut clock = Clock::of(zurich());
        for change in [1_774_746_000, 1_792_890_000] {
            for second in [change, change - 1, change + 1, change, change + 86_400, change - 86_400] {
                assert_eq!(shown(&mut clock, second), expected(second, &zurich()), "{second}");
            }
        }
    }

    #[test]
    fn a_time_that_is_not_told_keeps_its_columns() {
        let mut row = Vec::new();
        Clock::of(TimeZone::UTC).push(None, &mut row);
        assert_eq!(row, [b' '; TIME_WIDTH]);
    }

    #[test]
    fn sizes_stand_to_the_right() {
        let mut row = Vec::new();
        push_size(7, false, 4, &mut row);
        push_size(123_456, false, 4, &mut row);
        push_size(1536, true, 10, &mut row);
        assert_eq!(row, b"   7123456   1.5 KiB");
    }

    proptest! {
        #[test]
        fn times_are_those_of_the_library(seconds in proptest::collection::vec(0_i64..4_000_000_000, 1..20)) {
            let mut clock = Clock::of(zurich());
            for second in seconds {
                prop_assert_eq!(shown(&mut clock, second), expected(second, &zurich()));
            }
        }

        #[test]
        fn control_characters_are_spelled_out(text in any::<String>()) {
            let mut row = Vec::new();
            push_visible(&text, &mut row);
            prop_assert_eq!(String::from_utf8(row).unwrap(), visible(&text));
        }
    }
}
