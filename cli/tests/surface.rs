//! The command line from outside, without a server: help, usage errors, exit codes, and an endpoint that is not there.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod command;

use std::fs;
use std::net::TcpListener;
use std::process::Output;

use crate::command::{text, wirespeed};

fn run(arguments: &[&str]) -> Output {
    wirespeed().args(arguments).output().unwrap()
}

/// An address on which nothing listens.
fn closed_endpoint() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[test]
fn help_and_version_go_to_standard_output() {
    for arguments in [&["--help"][..], &["cp", "--help"], &["bench", "-h"]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(text(&output.stdout).contains("Examples:"), "{arguments:?}");
        assert!(output.stderr.is_empty(), "{arguments:?}");
    }
    let version = run(&["--version"]);
    assert_eq!(text(&version.stdout).trim(), concat!("wirespeed ", env!("CARGO_PKG_VERSION")));
    assert!(text(&run(&["--help"]).stdout).contains("Exit codes:"));
}

#[test]
fn usage_errors_exit_2_and_say_what_to_try() {
    for (arguments, hint) in [
        (&[][..], "Usage:"),
        (&["frobnicate"], "frobnicate"),
        (&["ls", "bucket"], "s3://bucket/key"),
        (&["ls", "s3:///"], "names no bucket"),
        (&["ls", "--all-versions", "s3://"], "name one"),
        (&["cp", "a", "b"], "s3://"),
        (&["cp", "-", "s3://bucket/"], "whole key"),
        (&["cp", "-r", "-", "s3://bucket/k"], "stream"),
        (&["cp", "-r", "s3://bucket/a", "s3://bucket/a/b"], "lies within"),
        (&["cp", "s3://a/b", "s3://c/d", "--content-type", "text/plain"], "--metadata-directive"),
        (&["cp", "s3://a/b", ".", "--content-type", "text/plain"], "no effect on a download"),
        (&["cp", "f", "s3://a/b", "--copy-props", "none"], "from S3 to S3"),
        (&["cp", "f", "s3://a/b", "--version-id", "1"], "--version-id"),
        (&["cp", "f", "s3://a/b", "--sse-c-key", "key-that-must-not-show"], "--sse-c"),
        (&["cp", "f", "s3://a/b", "--sse-c"], "--sse-c-key"),
        (&["cat", "s3://a/b", "--sse-c", "AES256", "--sse-c-key", "key-that-must-not-show"], "32 bytes"),
        (&["cp", "f", "s3://a/b", "--sse=rot13"], "aws:kms"),
        (&["cp", ".", "s3://a/b", "-r", "--sse", "AES256", "--sse-kms-key-id", "k"], "aws:kms"),
        (&["cp", "f", "s3://a/b", "--metadata", "a"], "k=v"),
        (&["cp", "f", "s3://a/b", "--metadata", "a=b\r\nevil: c"], "printable ASCII"),
        (&["cp", "f", "s3://a/b", "--tagging", "=v"], "k=v"),
        (&["cp", "f", "s3://a/b", "--expires", "soon"], "2027-01-31"),
        (&["cp", "f", "s3://a/b", "--acl", "everybody"], "public-read"),
        (&["cp", "f", "s3://a/b", "--checksum", "md4"], "CRC64NVME"),
        (&["cp", "f", "s3://a/b", "--expected-bucket-owner", "me"], "12 digits"),
        (&["pipe", "s3://bucket"], "whole key"),
        (&["presign", "s3://bucket"], "names no object"),
        (&["presign", "s3://bucket/k", "--expires-in", "604801"], "604800"),
        (&["presign", "s3://bucket/k", "--method", "POST"], "PUT"),
        (&["cat", "s3://bucket/k", "--range", "9-8"], "0-99"),
        (&["rm", "s3://bucket/k", "--version-id", "1", "--all-versions"], "--all-versions"),
        (&["rm", "s3://bucket/k*", "--version-id", "1"], "--raw"),
        (&["mv", "a", "b"], "s3://"),
        (&["mv", "s3://bucket/a", "s3://bucket/a"], "onto itself"),
        (&["mv", "s3://bucket/a", "/dev/null"], "keeps nothing"),
        (&["sync", "a", "b"], "s3://"),
        (&["sync", "-", "s3://bucket"], "stream"),
        (&["sync", "s3://bucket/a", "s3://bucket", "--delete"], "itself"),
        (&["sync", ".", "s3://bucket", "--max-delete", "3"], "--delete"),
        (&["sync", ".", "s3://bucket", "--size-only", "--checksum"], "--size-only"),
        (&["sync", ".", "s3://bucket", "--if-match", "e"], "ETag"),
        (&["cp", ".", "s3://bucket", "-r", "--source-region", "x"], "from S3 to S3"),
        (&["uploads"], "Usage:"),
        (&["uploads", "abort", "s3://bucket"], "--recursive"),
        (&["uploads", "abort", "s3://bucket", "-r", "--older-than", "soon"], "7d"),
        (&["completions", "cmd"], "powershell"),
        (&["manual", "fly"], "no verb"),
        (&["cp", "s3://bucket/dir/", "."], "--recursive"),
        (&["cp", "--recursive", "s3://bucket/dir", "-"], "stream"),
        (&["cp", ".", "s3://bucket/k"], "--recursive"),
        (&["cat", "s3://bucket"], "names no object"),
        (&["cat", "s3://bucket/*", "--version-id", "1"], "one object"),
        (&["stat", "s3://bucket/*", "--version-id", "1"], "one object"),
        (&["ls", "s3://bucket", "--older-than", "soon"], "7d"),
        (&["du"], "S3_URI"),
        (&["du", "s3://bucket", "--larger", "much"], "8MiB"),
        (&["tree", "s3://bucket", "--depth", "0"], "depth"),
        (&["find", "s3://bucket", "--command", "rm '{}"], "not closed"),
        (&["find", "s3://bucket", "--command", ""], "a verb"),
        (&["run"], "FILE"),
        (&["run", "--jobs", "0", "-"], "jobs"),
        (&["rm", "s3://bucket"], "--recursive"),
        (&["mb", "s3://bucket/key"], "s3://bucket"),
        (&["rb", "s3://bucket/key"], "s3://bucket"),
        (&["ls", "--part-size", "eight"], "eight"),
        (&["ls", "--concurrency", "0"], "concurrency"),
        (&["ls", "--set", "no_such_setting=1"], "no_such_setting"),
        (&["bench", "get", "s3://bucket/k", "--count", "3"], "prefix"),
        (&["bench", "get", "s3://bucket/k", "--rounds", "0"], "rounds"),
        (&["bench", "get", "s3://bucket/k", "s3://other/k"], "one bucket"),
        (&["bench", "put", "s3://bucket/k", "--sink", "discard"], "discard"),
        (&["bench", "get", "s3://bucket/", "--keys-format", "x", "--count", "1"], "{}"),
    ] {
        let output = run(arguments);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(hint), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("must-not-show"), "{arguments:?}: {stderr}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn completions_and_the_manual_need_no_credentials() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    for arguments in
        [&["completions", "bash"][..], &["manual"], &["manual", "cp"], &["manual", "--folder", pages.to_str().unwrap()]]
    {
        let output = wirespeed().args(arguments).env_remove("AWS_SECRET_ACCESS_KEY").output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
    }
    let nested = fs::read_to_string(pages.join("wirespeed-uploads-abort.1")).unwrap();
    assert!(nested.contains("wirespeed uploads abort"), "{nested}");
    assert!(fs::read_dir(&pages).unwrap().count() > 10);
}

#[test]
fn the_manual_renders_without_a_warning() {
    let page = run(&["manual", "cp"]).stdout;
    let found = std::process::Command::new("groff")
        .args(["-man", "-Tutf8", "-ww", "-P-cbou"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn();
    // Where there is no groff the page is still checked for what it says.
    let rendered = match found {
        Ok(mut groff) => {
            use std::io::Write as _;
            groff.stdin.take().unwrap().write_all(&page).unwrap();
            let output = groff.wait_with_output().unwrap();
            assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
            text(&output.stdout)
        }
        Err(_) => text(&page).replace("\\-", "-"),
    };
    for words in ["--storage-class", "--metadata-directive", "s3://bucket/photos ./photos"] {
        assert!(rendered.contains(words), "{words}: {rendered}");
    }
}

#[test]
fn certificates_that_are_not_verified_are_loudly_told() {
    for (arguments, told) in [
        (&["--no-verify-ssl", "--endpoint-url", "https://127.0.0.1:1"][..], 1),
        (&["--set", "verify_tls=false", "--quiet", "--endpoint-url", "https://127.0.0.1:1"], 1),
        (&["--no-verify-ssl", "--endpoint-url", "http://127.0.0.1:1"], 0),
        (&["--endpoint-url", "https://127.0.0.1:1"], 0),
    ] {
        let output = wirespeed().args(arguments).args(["--set", "max_attempts=1", "ls"]).output().unwrap();
        assert_eq!(text(&output.stderr).matches("NOT verified").count(), told, "{arguments:?}");
    }
}

#[test]
fn an_endpoint_that_is_not_there_exits_3() {
    let endpoint = closed_endpoint();
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("target");
    let source = folder.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("file"), "content").unwrap();
    let (target, source) = (target.to_str().unwrap(), source.to_str().unwrap());
    for arguments in [
        &["ls"][..],
        &["ls", "s3://bucket"],
        &["cat", "s3://bucket/k"],
        &["stat", "s3://bucket/k"],
        &["stat", "s3://bucket"],
        &["stat", "s3://bucket/*"],
        &["cat", "s3://bucket/*"],
        &["du", "s3://bucket"],
        &["tree", "s3://bucket"],
        &["find", "s3://bucket"],
        &["rm", "s3://bucket/k"],
        &["rm", "-r", "s3://bucket"],
        &["rm", "-r", "--all-versions", "s3://bucket"],
        &["rm", "-r", "--dryrun", "s3://bucket"],
        &["pipe", "s3://bucket/k"],
        &["cp", "-", "s3://bucket/k"],
        &["cp", "s3://bucket/k", "-"],
        &["cp", "s3://bucket/k", "s3://other/k"],
        &["cp", "-r", "s3://bucket/k", "s3://other/k"],
        &["cp", "--dryrun", "s3://bucket/k", "."],
        &["uploads", "ls", "s3://bucket"],
        &["uploads", "abort", "s3://bucket/k"],
        &["uploads", "abort", "s3://bucket/k", "--upload-id", "u"],
        &["mb", "s3://bucket"],
        &["rb", "s3://bucket"],
        &["cp", "s3://bucket/k", target],
        &["cp", "-r", "s3://bucket/k", target],
        &["cp", "-r", source, "s3://bucket/k"],
        &["mv", "s3://bucket/k", target],
        &["mv", "-r", source, "s3://bucket/k"],
        &["sync", "s3://bucket/k", target],
        &["sync", source, "s3://bucket/k"],
        &["bench", "get", "s3://bucket/k"],
    ] {
        let output = wirespeed()
            .args(["--endpoint-url", &endpoint, "--set", "max_attempts=2"])
            .args(arguments)
            .output()
            .unwrap();
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {stderr}");
        assert!(stderr.starts_with("wirespeed: "), "{arguments:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{arguments:?}: {stderr}");
        assert!(!stderr.contains("a-secret-that-must-not-show"), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    assert!(!folder.path().join("target").exists(), "nothing came, so nothing is there");
}

#[test]
fn errors_are_also_json_when_asked() {
    let output =
        run(&["--json", "--endpoint-url", &closed_endpoint(), "--set", "max_attempts=1", "stat", "s3://bucket/k"]);
    assert_eq!(output.status.code(), Some(3));
    let stderr = text(&output.stderr);
    let json: serde_json::Value = serde_json::from_str(stderr.lines().last().unwrap()).unwrap();
    assert_eq!(json["error"]["kind"], "connection");
    assert_eq!(json["error"]["bucket"], "bucket");
    assert_eq!(json["error"]["key"], "k");
    assert_eq!(json["error"]["attempts"], 1);
}

#[test]
fn a_missing_source_exits_3() {
    for arguments in [
        &["cp", "no-such-file", "s3://bucket/k"][..],
        &["cp", "-r", "no-such-folder", "s3://bucket/k"],
        &["run", "no-such-file"],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(3), "{arguments:?}");
        assert!(text(&output.stderr).contains("check the path"), "{arguments:?}");
    }
}
