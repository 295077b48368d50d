//! When both sides have something of one name: whether it is the same. The rules are `aws s3 sync`'s.

use crate::entry::Entry;

/// How a sync tells whether the two sides have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compare {
    /// They differ in size, or the source is newer. A download, whose file gets the object's time, differs where the
    /// file is newer than the object: somebody changed it.
    #[default]
    SizeAndTime,
    /// As before, and a download differs where the times do, whichever is newer, to the second.
    ExactTime,
    /// They differ in size.
    SizeOnly,
    /// They differ in size or in what is in them, told by checksums and without downloading, where there are any to
    /// compare; else as `SizeAndTime`.
    Checksum,
    /// Whatever is on the other side stays as it is.
    Absent,
    /// Everything is transferred again.
    Always,
}

/// What a comparison without asking further comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Same,
    Different,
    /// Sizes agree; the rule asks for more than the listings tell.
    Ask,
}

/// Which way a job goes, as far as the meaning of times depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Down,
    UpOrAcross,
}

impl Compare {
    /// Judges what both listings tell.
    pub(crate) fn judge(self, direction: Direction, source: &Entry, target: &Entry) -> Verdict {
        let same_size = source.size.is_some() && source.size == target.size;
        let same = match self {
            Compare::Always => return Verdict::Different,
            Compare::Absent => return Verdict::Same,
            Compare::Checksum if same_size => return Verdict::Ask,
            Compare::Checksum => false,
            Compare::SizeOnly => same_size,
            Compare::SizeAndTime => same_size && same_time(direction, source, target),
            Compare::ExactTime if direction == Direction::Down => same_size && same_second(source, target),
            Compare::ExactTime => same_size && same_time(direction, source, target),
        };
        if same { Verdict::Same } else { Verdict::Different }
    }
}

/// Whether the target is not older than the source; a file that was downloaded, not newer.
fn same_time(direction: Direction, source: &Entry, target: &Entry) -> bool {
    match (source.modified, target.modified) {
        (Some(source), Some(target)) if direction == Direction::Down => target <= source,
        (Some(source), Some(target)) => target >= source,
        _ => false,
    }
}

/// To the second, because a store may tell fractions in a listing that it does not tell elsewhere.
fn same_second(source: &Entry, target: &Entry) -> bool {
    source.modified.is_some()
        && source.modified.map(|time| time.as_second()) == target.modified.map(|time| time.as_second())
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    fn entry(size: u64, milliseconds: Option<i64>) -> Entry {
        let modified = milliseconds.map(|time| Timestamp::from_millisecond(time).unwrap());
        Entry { size: Some(size), modified, ..Entry::named("a") }
    }

    fn same(compare: Compare, direction: Direction, source: Option<i64>, target: Option<i64>) -> bool {
        assert_eq!(compare.judge(direction, &entry(3, source), &entry(4, target)), Verdict::Different, "sizes differ");
        compare.judge(direction, &entry(3, source), &entry(3, target)) == Verdict::Same
    }

    #[test]
    fn an_upload_or_copy_differs_where_the_source_is_newer() {
        for compare in [Compare::SizeAndTime, Compare::ExactTime] {
            assert!(same(compare, Direction::UpOrAcross, Some(5_000), Some(5_000)));
            assert!(same(compare, Direction::UpOrAcross, Some(5_000), Some(9_000)));
            assert!(!same(compare, Direction::UpOrAcross, Some(5_001), Some(5_000)));
            assert!(!same(compare, Direction::UpOrAcross, None, Some(5_000)));
        }
    }

    #[test]
    fn a_download_differs_where_the_file_is_newer() {
        assert!(same(Compare::SizeAndTime, Direction::Down, Some(5_000), Some(5_000)));
        assert!(same(Compare::SizeAndTime, Direction::Down, Some(5_000), Some(4_000)));
        assert!(!same(Compare::SizeAndTime, Direction::Down, Some(5_000), Some(5_001)));
        assert!(same(Compare::ExactTime, Direction::Down, Some(5_123), Some(5_000)));
        assert!(!same(Compare::ExactTime, Direction::Down, Some(5_000), Some(4_000)));
        assert!(!same(Compare::ExactTime, Direction::Down, None, None));
    }

    #[test]
    fn sizes_alone_and_checksums() {
        assert!(same(Compare::SizeOnly, Direction::Down, Some(1), Some(9)));
        let unknown = Entry::named("a");
        assert_eq!(Compare::SizeOnly.judge(Direction::Down, &unknown, &unknown), Verdict::Different);
        assert_eq!(Compare::Checksum.judge(Direction::Down, &entry(3, None), &entry(3, None)), Verdict::Ask);
        assert_eq!(Compare::Checksum.judge(Direction::Down, &entry(3, None), &entry(4, None)), Verdict::Different);
        assert_eq!(Compare::Absent.judge(Direction::Down, &entry(3, None), &entry(4, None)), Verdict::Same);
        assert_eq!(Compare::Always.judge(Direction::Down, &entry(3, None), &entry(3, None)), Verdict::Different);
    }
}
