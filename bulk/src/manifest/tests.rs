use super::*;
use proptest::prelude::*;

fn read(form: &Form, text: impl AsRef<[u8]>) -> Vec<Result<Entry, String>> {
    let manifest = Manifest::new(text.as_ref(), form, Some("b"), "a/");
    manifest.map(|entry| entry.map_err(|error| error.to_string())).collect()
}

fn entry(key: &str, size: u64, etag: &str) -> Entry {
    Entry { size: Some(size), etag: Some(etag.to_owned()), ..Entry::named(key) }
}

#[test]
fn a_name_a_line() {
    let text = "a/x\ns3://b/a/y z\r\n\na/sized\t12\na/tagged\t12\t\"e\"\na/tagged only\t\t\"e\"\na/last";
    let read = read(&Form::Lines, text);
    let sized = Entry { size: Some(12), ..Entry::named("sized") };
    let tagged_only = Entry { etag: Some("\"e\"".to_owned()), ..Entry::named("tagged only") };
    let expected = [
        Entry::named("x"),
        Entry::named("y z"),
        sized,
        entry("tagged", 12, "\"e\""),
        tagged_only,
        Entry::named("last"),
    ];
    assert_eq!(read, expected.map(Ok));
}

#[test]
fn the_slash_of_an_access_point_belongs_to_its_bucket() {
    const POINT: &str = "arn:aws:s3:eu-west-1:123456789012:accesspoint/mine";
    let text = format!("s3://{POINT}/a/x\ns3://{POINT}\ns3://bucket/a/y\n");
    let mut read = Manifest::new(text.as_bytes(), &Form::Lines, Some(POINT), "a/");
    assert_eq!(read.next().unwrap().unwrap(), Entry::named("x"));
    assert!(read.next().unwrap().unwrap_err().to_string().contains("names no object"));
    assert!(read.next().unwrap().unwrap_err().to_string().contains("bucket `bucket`"));
}

#[test]
fn a_line_that_is_wrong_is_told_by_its_number_and_the_rest_is_read() {
    let text = b"a/x\n\nelsewhere\ns3://other/a/y\ns3://b\na/\na/n\tmany\na/\xff\na/t\t1\t2\t3\na/z\n";
    let read = read(&Form::Lines, text);
    let problems: Vec<&str> = read.iter().filter_map(|entry| entry.as_ref().err()).map(String::as_str).collect();
    for (problem, (line, word)) in problems.iter().zip([
        (3, "does not begin with `a/`"),
        (4, "bucket `other`"),
        (5, "names no object"),
        (6, "names no object"),
        (7, "no number of bytes"),
        (8, "UTF-8"),
        (9, "more than"),
    ]) {
        assert!(problem.starts_with(&format!("line {line} of the manifest: ")) && problem.contains(word), "{problem}");
    }
    assert_eq!(problems.len(), 7);
    assert_eq!((read.first(), read.last()), (Some(&Ok(Entry::named("x"))), Some(&Ok(Entry::named("z")))));
}

#[test]
fn names_that_end_in_a_nul_may_hold_anything_else() {
    assert_eq!(
        read(&Form::Nul, "a/x\ty\0a/line\nfeed\0s3://b/a/z"),
        ["x\ty", "line\nfeed", "z"].map(|key| Ok(Entry::named(key)))
    );
}

#[test]
fn an_inventory() {
    let text = "\"b\",\"a/x%2By+z\",\"7\",\"2026-01-31T12:00:00.000Z\",\"abc\"\n\"b\",\"a/%22q%22\",\"\",\"\",\"\"\n\"b\",\"a/x\",\"q\"\n";
    let read = read(&Form::csv("Bucket, Key, Size, LastModifiedDate, ETag"), text);
    let modified = "2026-01-31T12:00:00Z".parse().ok();
    assert_eq!(read[0], Ok(Entry { modified, ..entry("x+y z", 7, "\"abc\"") }));
    assert_eq!(read[1], Ok(Entry::named("\"q\"")));
    assert_eq!(read[2], Err("line 3 of the manifest: `q` is no number of bytes".to_owned()));
}

#[test]
fn a_first_row_may_name_the_columns_and_without_it_they_are_bucket_and_key() {
    let named = "Key,IsDeleteMarker,Bucket,VersionId\na/x,false,b,v1\na/y,true,b,v2\n";
    let version = Entry { version: Some("v1".to_owned()), ..Entry::named("x") };
    assert_eq!(read(&Form::Csv(Vec::new()), named), [Ok(version)]);
    assert_eq!(read(&Form::Csv(Vec::new()), "b,a/x\nb,a/y,what\n"), ["x", "y"].map(|key| Ok(Entry::named(key))));
}

#[test]
fn what_ls_prints_is_read_back() {
    let text = concat!(
        r#"{"type":"prefix","prefix":"a/"}"#,
        "\n",
        r#"{"type":"object","key":"a/x\ty","size":5,"last_modified":"2026-01-31T12:00:00Z","etag":"\"e\"","storage_class":"STANDARD"}"#,
        "\n",
        r#"{"type":"version","key":"a/v","version_id":"v1","is_latest":false,"is_delete_marker":false,"size":1}"#,
        "\n",
        r#"{"type":"version","key":"a/v","version_id":"v2","is_latest":true,"is_delete_marker":true,"size":0}"#,
        "\n",
        r#"{"type":"summary","objects":1,"bytes":5}"#,
        "\n{\n",
        r#"{"type":"object","size":1}"#,
    );
    let read = read(&Form::Json, text);
    let modified = "2026-01-31T12:00:00Z".parse().ok();
    assert_eq!(read[0], Ok(Entry { modified, ..entry("x\ty", 5, "\"e\"") }));
    assert_eq!(read[1], Ok(Entry { size: Some(1), version: Some("v1".to_owned()), ..Entry::named("v") }));
    assert!(read[2].as_ref().is_err_and(|why| why.starts_with("line 6 of the manifest: it is no JSON")), "{read:?}");
    assert_eq!(read[3], Err("line 7 of the manifest: it has no `key`".to_owned()));
    assert_eq!(read.len(), 4);
}

#[test]
fn forms_are_guessed_from_the_beginning() {
    assert_eq!(Form::guess(b"\"b\",\"k\"\n"), Form::Csv(Vec::new()));
    assert_eq!(Form::guess(b"\n{\"type\""), Form::Json);
    assert_eq!(Form::guess(b"k\0k2\0"), Form::Nul);
    assert_eq!(Form::guess(b"k\nk2"), Form::Lines);
    assert_eq!(Form::guess(b""), Form::Lines);
}

#[test]
fn a_line_without_an_end_is_not_read_into_memory() {
    let endless = std::io::BufReader::new(std::io::Read::take(std::io::repeat(b'x'), 1 << 30));
    let mut manifest = Manifest::new(endless, &Form::Lines, None, "");
    assert!(manifest.next().is_some_and(|line| line.is_err_and(|error| error.why.contains("longer"))));
    assert!(manifest.next().is_none());
}

proptest! {
    #[test]
    fn whatever_it_reads_it_ends(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for form in [Form::Lines, Form::Nul, Form::Json, Form::Csv(Vec::new()), Form::guess(&bytes)] {
            let read = read(&form, &bytes);
            prop_assert!(read.len() <= bytes.len());
            prop_assert!(read.iter().flatten().all(|entry| !entry.key.is_empty()));
        }
    }
}
