//! A file's time and mode as metadata of its object.
//!
//! Written as rclone writes them: `mtime` in seconds with nine decimals, `mode` in octal with the type of file before the
//! permissions. Read as rclone and s3fs write them: a `mode` that does not begin with 0 is decimal.

use jiff::Timestamp;
use wirespeed::FileAttributes;

use crate::entry::Entry;

const MTIME: &str = "mtime";
const MODE: &str = "mode";

/// The permissions; what else a mode can ask for is not given to a file because an object says so.
const PERMISSIONS: u32 = 0o777;

/// The pairs of metadata that keep what is known of a file.
pub(crate) fn metadata(file: &Entry) -> impl Iterator<Item = (&'static str, String)> {
    let mtime = file.modified.map(|time| (MTIME, written(time)));
    let mode = file.mode.map(|mode| (MODE, format!("0{mode:o}")));
    mtime.into_iter().chain(mode)
}

/// What an object's metadata says of the file that it was.
pub(crate) fn attributes(metadata: &[(String, String)]) -> FileAttributes {
    FileAttributes {
        modified: value(metadata, MTIME).and_then(time),
        mode: value(metadata, MODE).and_then(mode).map(|mode| mode & PERMISSIONS),
    }
}

/// Whether a file is as the metadata says, in as far as it says anything; `None` where it says nothing of time.
pub(crate) fn agrees(metadata: &[(String, String)], file: &Entry) -> Option<bool> {
    let kept = attributes(metadata);
    let same_time = kept.modified.map(|time| file.modified == Some(time))?;
    let same_mode = kept.mode.zip(file.mode).is_none_or(|(kept, mode)| kept == mode & PERMISSIONS);
    Some(same_time && same_mode)
}

fn value<'a>(metadata: &'a [(String, String)], name: &str) -> Option<&'a str> {
    metadata.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

fn written(time: Timestamp) -> String {
    let nanoseconds = time.as_nanosecond();
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let nanoseconds = nanoseconds.unsigned_abs();
    format!("{sign}{}.{:09}", nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000)
}

/// Seconds since 1970, with as many decimals as there are.
fn time(text: &str) -> Option<Timestamp> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if seconds.is_empty() || !digits(seconds) || !digits(fraction) {
        return None;
    }
    let nanoseconds: i128 = format!("{:0<9.9}", fraction).parse().ok()?;
    let all = seconds.parse::<i128>().ok()?.checked_mul(1_000_000_000)?.checked_add(nanoseconds)?;
    Timestamp::from_nanosecond(if negative { -all } else { all }).ok()
}

fn mode(text: &str) -> Option<u32> {
    let radix = if text.starts_with('0') { 8 } else { 10 };
    u32::from_str_radix(text, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn what_others_write_is_read() {
        let rclone = attributes(&pairs(&[("mtime", "1700000000.123456789"), ("mode", "0100640")]));
        assert_eq!(rclone.modified, Timestamp::from_nanosecond(1_700_000_000_123_456_789).ok());
        assert_eq!(rclone.mode, Some(0o640));
        let s3fs = attributes(&pairs(&[("mode", "33188"), ("mtime", "1700000000")]));
        assert_eq!((s3fs.modified, s3fs.mode), (Timestamp::from_second(1_700_000_000).ok(), Some(0o644)));
        for nonsense in ["", "-", "1.x", "x", "1e9", "99999999999999999999999999999999999999999", "+1", "1.-5"] {
            assert_eq!(time(nonsense), None, "{nonsense}");
        }
        assert_eq!(
            attributes(&pairs(&[("mode", "0104755")])).mode,
            Some(0o755),
            "no object makes a program run as root"
        );
    }

    #[test]
    fn a_file_agrees_with_what_is_kept_of_it() {
        let time = Timestamp::from_nanosecond(1_700_000_000_000_000_001).ok();
        let file = Entry { modified: time, mode: Some(0o100644), ..Entry::named("a") };
        let kept: Vec<_> = metadata(&file).map(|(name, value)| (name.to_owned(), value)).collect();
        assert_eq!(kept, pairs(&[("mtime", "1700000000.000000001"), ("mode", "0100644")]));
        assert_eq!(agrees(&kept, &file), Some(true));
        assert_eq!(agrees(&kept, &Entry { mode: Some(0o100600), ..file.clone() }), Some(false));
        assert_eq!(agrees(&kept, &Entry { modified: None, ..file.clone() }), Some(false));
        assert_eq!(agrees(&pairs(&[("mode", "0100644")]), &file), None);
    }

    proptest! {
        #[test]
        fn times_read_back_as_written(seconds in -4_000_000_000i64..4_000_000_000, nanoseconds in 0..1_000_000_000i32) {
            if let Ok(moment) = Timestamp::new(seconds, nanoseconds) {
                prop_assert_eq!(time(&written(moment)), Some(moment));
            }
        }

        #[test]
        fn any_text_is_read_or_not(text in any::<String>()) {
            time(&text);
            mode(&text);
        }
    }
}
