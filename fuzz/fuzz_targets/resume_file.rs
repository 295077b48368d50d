//! A resume file: whatever stands in it, reading ends at the first line that is no record, and what is read is written
//! back as lines that say the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wirespeed_fuzz::resume_record::{LONGEST_LINE, add_range, read_line, write_line};

fuzz_target!(|data: &[u8]| {
    let mut ranges = Vec::new();
    for line in data.split_inclusive(|byte| *byte == b'\n') {
        // The checksum stands in the way of every guess: it is put right first.
        let mut mended = line.strip_suffix(b"\n").unwrap_or(line).to_vec();
        if let Some(json) = mended.get(9..).filter(|json| json.len() < LONGEST_LINE) {
            let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, json) as u32;
            mended.splice(..9, format!("{sum:08x} ").into_bytes());
            mended.push(b'\n');
        }
        let read = read_line(line);
        assert!(read.is_none() || line == mended, "a line with another checksum was read");
        let Some(record) = read_line(&mended) else { continue };
        let mut written = Vec::new();
        write_line(&mut written, &record);
        assert_eq!(written.iter().filter(|byte| **byte == b'\n').count(), 1, "{record:?} is not one line");
        assert_eq!(read_line(&written).as_ref(), Some(&record), "it says something else when it is written again");
        for cut in [0, 8, 9, written.len() / 2, written.len() - 1] {
            assert!(read_line(&written[..cut]).is_none(), "a torn line was read");
        }
        if let wirespeed_fuzz::resume_record::Record::Landed { from, until, .. } = record {
            add_range(&mut ranges, from..until);
            assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start), "{ranges:?}");
            assert!(ranges.iter().all(|range| !range.is_empty()));
        }
    }
});
