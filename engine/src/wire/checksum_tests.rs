use proptest::prelude::*;

use super::*;
use crate::wire::request::Method;
use crate::wire::response::parse_response;

#[test]
fn md5_matches_known_digests() {
    assert_eq!(content_md5(b"Check Integrity!"), "nwqq6b6ua/tTDk7B5M184w==");
    assert_eq!(content_md5(b""), "1B2M2Y8AsgTpgAmY7PhCfg==");
}

#[test]
fn sums_match_the_catalogue() {
    // The catalogue's check values, of "123456789"; SHA-256 by sha256sum.
    for (algorithm, bytes) in [
        (ChecksumAlgorithm::Crc64Nvme, &0xae8b_1486_0a79_9888u64.to_be_bytes()[..]),
        (ChecksumAlgorithm::Crc32, &0xcbf4_3926u32.to_be_bytes()[..]),
        (ChecksumAlgorithm::Crc32c, &0xe306_9283u32.to_be_bytes()[..]),
    ] {
        assert_eq!(Sum::of(algorithm, b"123456789").value(), STANDARD.encode(bytes), "{algorithm}");
    }
    assert_eq!(
        Sum::of(ChecksumAlgorithm::Sha256, b"123456789").value(),
        "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU="
    );
}

#[test]
fn names_lead_back_to_their_algorithm() {
    for algorithm in ChecksumAlgorithm::ALL {
        assert_eq!(ChecksumAlgorithm::named(algorithm.name()), Some(algorithm));
        assert_eq!(ChecksumAlgorithm::named(algorithm.s3_name()), Some(algorithm));
        assert_eq!(ChecksumAlgorithm::of_element(algorithm.element()), Some(algorithm));
    }
    assert_eq!(ChecksumAlgorithm::named("md5"), None);
    assert_eq!(ChecksumAlgorithm::of_element("ChecksumType"), None);
}

#[test]
fn sums_of_different_kinds_do_not_combine() {
    let sum = |algorithm| Sum::of(algorithm, b"abc");
    assert_eq!(sum(ChecksumAlgorithm::Crc32).then(sum(ChecksumAlgorithm::Crc32c)), None);
    assert_eq!(sum(ChecksumAlgorithm::Sha256).then(sum(ChecksumAlgorithm::Sha256)), None);
    assert_eq!(Sum::of_parts([]), None);
    assert_eq!(Sum::of_parts([sum(ChecksumAlgorithm::Sha256)]), Some(sum(ChecksumAlgorithm::Sha256)));
}

fn head_with(lines: &str) -> Option<Checksum> {
    let text = format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{lines}\r\n");
    let (head, _) = parse_response(text.as_bytes(), Method::Get).unwrap().unwrap();
    Checksum::in_head(&head)
}

#[test]
fn a_head_tells_its_checksum_and_whether_it_is_of_the_parts() {
    let whole = head_with("X-Amz-Checksum-CRC64NVME: rosUhgp5mIg=\r\nx-amz-checksum-type: FULL_OBJECT\r\n").unwrap();
    assert_eq!((whole.algorithm, whole.composite), (ChecksumAlgorithm::Crc64Nvme, false));
    assert_eq!(whole.value, "rosUhgp5mIg=");
    assert!(head_with("x-amz-checksum-sha256: abc=-3\r\n").unwrap().composite);
    assert!(head_with("x-amz-checksum-crc32: AAAAAA==\r\nx-amz-checksum-type: composite\r\n").unwrap().composite);
    let both = head_with("x-amz-checksum-sha256: abc=\r\nx-amz-checksum-crc32c: AAAAAA==\r\n").unwrap();
    assert_eq!(both.algorithm, ChecksumAlgorithm::Crc32c);
    for none in ["", "x-amz-checksum-sha1: abc=\r\n", "x-amz-checksum-type: FULL_OBJECT\r\n", "x-amz-checksum-: a\r\n"]
    {
        assert_eq!(head_with(none), None, "{none}");
    }
}

proptest! {
    #[test]
    fn parts_combined_in_any_order_are_the_whole(
        content in proptest::collection::vec(any::<u8>(), 0..20_000),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..9),
        order in any::<u64>(),
    ) {
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(content.len() + 1)).collect();
        ends.push(content.len());
        ends.sort_unstable();
        let starts = std::iter::once(0).chain(ends.iter().copied());
        for algorithm in ChecksumAlgorithm::ALL.into_iter().filter(|algorithm| algorithm.combines()) {
            // Neighbours are joined in an order of the test's choosing, until one is left.
            let mut sums: Vec<Sum> =
                starts.clone().zip(&ends).map(|(start, &end)| Sum::of(algorithm, &content[start..end])).collect();
            prop_assert_eq!(Sum::of_parts(sums.iter().copied()), Some(Sum::of(algorithm, &content)));
            let mut order = order;
            while sums.len() > 1 {
                let at = order as usize % (sums.len() - 1);
                order = order.rotate_right(7) ^ 0x5bd1;
                let behind = sums.remove(at + 1);
                sums[at] = sums[at].then(behind).unwrap();
            }
            prop_assert_eq!(sums[0], Sum::of(algorithm, &content));
        }
    }

    #[test]
    fn combining_agrees_with_the_library(a: u64, b: u64, length in 0u64..1 << 45) {
        for algorithm in [ChecksumAlgorithm::Crc64Nvme, ChecksumAlgorithm::Crc32, ChecksumAlgorithm::Crc32c] {
            let crc = crc_of(algorithm).unwrap();
            let mask = u64::MAX >> (64 - crc.bits);
            let sum = |value, length| Sum { algorithm, digest: Digest::Crc(value & mask), length };
            let theirs = crc_fast::checksum_combine(crc.fast, a & mask, b & mask, length);
            prop_assert_eq!(sum(a, 1).then(sum(b, length)), Some(sum(theirs, 1 + length)));
        }
    }

    #[test]
    fn any_split_of_the_input_gives_the_same_sum(content in proptest::collection::vec(any::<u8>(), 0..5_000), step in 1usize..999) {
        for algorithm in ChecksumAlgorithm::ALL {
            let mut summer = Summer::new(algorithm);
            content.chunks(step).for_each(|piece| summer.update(piece));
            prop_assert_eq!(summer.finish(), Sum::of(algorithm, &content));
        }
    }
}
