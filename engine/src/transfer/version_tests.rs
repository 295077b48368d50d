//! Range pinning, against servers that tell the truth and servers that do not.

use proptest::prelude::*;

use super::*;
use crate::wire::request::Method;
use crate::wire::response::parse_response;

/// What a server says of one object.
#[derive(Debug, Clone)]
struct Said {
    status: u16,
    /// First, last and total of Content-Range.
    range: Option<(u64, u64, Option<u64>)>,
    length: Option<u64>,
    etag: Option<&'static str>,
    version_id: Option<&'static str>,
    last_modified: Option<&'static str>,
}

impl Said {
    /// The answer of a server that holds `size` bytes to a request for `asked`.
    fn truly(asked: &Range<u64>, size: u64) -> Said {
        let end = asked.end.min(size);
        Said {
            status: 206,
            range: Some((asked.start, end - 1, Some(size))),
            length: Some(end - asked.start),
            etag: Some("\"one\""),
            version_id: Some("v1"),
            last_modified: Some("Wed, 21 Oct 2015 07:28:00 GMT"),
        }
    }

    fn judge(&self, asked: &Range<u64>, version: Option<&Version>) -> Result<Accepted, ErrorKind> {
        let text = self.text();
        let (head, _) = parse_response(text.as_bytes(), Method::Get).unwrap().unwrap();
        accept_range(&head, asked, None, version).map_err(|failure| failure.error.kind())
    }

    fn version(&self, size: u64) -> Version {
        let text = self.text();
        let (head, _) = parse_response(text.as_bytes(), Method::Get).unwrap().unwrap();
        Version::of(&head, size)
    }

    fn text(&self) -> String {
        let mut text = format!("HTTP/1.1 {} Said\r\n", self.status);
        let mut add = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                text.push_str(&format!("{name}: {value}\r\n"));
            }
        };
        let total = |total: Option<u64>| total.map_or("*".to_owned(), |total| total.to_string());
        add("Content-Range", self.range.map(|(first, last, size)| format!("bytes {first}-{last}/{}", total(size))));
        add("Content-Length", self.length.map(|length| length.to_string()));
        add("ETag", self.etag.map(str::to_owned));
        add("x-amz-version-id", self.version_id.map(str::to_owned));
        add("Last-Modified", self.last_modified.map(str::to_owned));
        text + "\r\n"
    }
}

/// A size, and a range that begins within it.
fn objects() -> impl Strategy<Value = (u64, Range<u64>)> {
    let sizes = prop_oneof![1..200u64, Just(8u64 << 20), 1..=(50u64 << 40), Just(u64::MAX - 1)];
    sizes.prop_flat_map(|size| {
        let length = prop_oneof![1..300u64, Just(8u64 << 20), Just(u64::MAX)];
        (Just(size), 0..size, length).prop_map(|(size, start, length)| (size, start..start.saturating_add(length)))
    })
}

fn other(than: u64, by: u64) -> u64 {
    if by == 0 || than.checked_sub(by).is_none() { than.saturating_add(by.max(1)) } else { than - by }
}

proptest! {
    #[test]
    fn the_truth_is_accepted((size, asked) in objects()) {
        let said = Said::truly(&asked, size);
        let version = said.version(size);
        for known in [None, Some(&version)] {
            let accepted = said.judge(&asked, known).unwrap();
            prop_assert_eq!(accepted.range, asked.start..asked.end.min(size));
            prop_assert_eq!(accepted.size, size);
        }
    }

    /// Whatever a server says, what is accepted is what was asked for, and as long as it is said to be.
    #[test]
    fn nothing_else_than_what_was_asked_for_is_accepted(
        (size, asked) in objects(),
        status in prop::sample::select(vec![200u16, 201, 204, 206]),
        first in prop_oneof![Just(None), (0..300u64).prop_map(Some), any::<u64>().prop_map(Some)],
        length in prop_oneof![0..300u64, any::<u64>()],
        said_length in prop_oneof![Just(None), (0..300u64).prop_map(Some), any::<u64>().prop_map(Some)],
        total in prop_oneof![Just(None), any::<u64>().prop_map(Some)],
        true_total in any::<bool>(),
    ) {
        let total = if true_total { Some(size) } else { total };
        let range = first.and_then(|first| {
            let last = first.checked_add(length)?;
            total.is_none_or(|total| last < total).then_some((first, last, total))
        });
        let said = Said { status, range, length: said_length, ..Said::truly(&asked, size) };
        if let Ok(accepted) = said.judge(&asked, None) {
            let asked_for = asked.start..asked.end.min(accepted.size);
            prop_assert!(accepted.range == asked_for || (status == 200 && accepted.range == (0..accepted.size)));
            prop_assert!(accepted.range.end <= accepted.size);
            if let Some(length) = said.length {
                prop_assert_eq!(length, accepted.range.end - accepted.range.start);
            }
            if status == 206 || accepted.range != (0..accepted.size) {
                prop_assert_eq!(range, Some((asked_for.start, asked_for.end - 1, Some(accepted.size))));
            }
        }
    }

    /// One lie in an answer that is otherwise true.
    #[test]
    fn a_range_that_is_off_is_refused((size, asked) in objects(), which in 0..4usize, by in 1..300u64) {
        let mut said = Said::truly(&asked, size);
        let (first, last, total) = said.range.unwrap();
        let length = said.length.unwrap();
        match which {
            0 => said.length = Some(other(length, by)),
            1 if first > 0 => said.range = Some((first - by.min(first), last, total)),
            1 => prop_assume!(false),
            2 => said.range = Some((first, last, None)),
            _ if last > first => said.range = Some((first, last - by.min(last - first), total)),
            _ => prop_assume!(false),
        }
        prop_assert_eq!(said.judge(&asked, None), Err(ErrorKind::Integrity));
    }

    /// Each thing that tells versions apart does so alone, also where the server ignores If-Match.
    #[test]
    fn another_version_is_refused((size, asked) in objects(), which in 0..4usize, by in 1..300u64) {
        let first = Said::truly(&asked, size);
        let mut known = first.version(size);
        let mut said = first;
        match which {
            0 => said.etag = Some("\"two\""),
            1 => said.version_id = Some("v2"),
            2 => {
                // Two writes within a second of each other have one time: it counts where nothing better is there.
                (known.etag, said.etag) = (None, None);
                said.last_modified = Some("Wed, 21 Oct 2015 07:28:01 GMT");
            }
            _ => known.size = other(size, by),
        }
        prop_assert_eq!(said.judge(&asked, Some(&known)), Err(ErrorKind::Precondition));
    }
}

#[test]
fn strong_tags_pin_and_weak_ones_do_not() {
    let said = Said::truly(&(0..1), 1);
    assert_eq!(said.version(1).if_match(), Some("\"one\""));
    assert_eq!(said.version(1).version_to_ask_for(), None);
    for etag in [None, Some("W/\"one\""), Some("one")] {
        let version = Said { etag, ..said.clone() }.version(1);
        assert_eq!((version.if_match(), version.version_to_ask_for()), (None, Some("v1")), "{etag:?}");
    }
}
