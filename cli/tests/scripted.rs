//! The command line against a server that says what no honest one would: what the exit code and the account make of it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod command;
mod server;

use std::fs;
use std::hint::black_box;
use std::io::{Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::command::{process, text, wirespeed};
use crate::server::{Answer, Server};

fn run(server: &Server, arguments: &[&str]) -> Output {
    wirespeed()
        .args(["--endpoint-url", &server.endpoint, "--concurrency", "1", "--set", "max_attempts=1"])
        .args(arguments)
        .output()
        .unwrap()
}

/// A folder of small files.
fn folder(names: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in names {
        fs::write(folder.path().join(name), name).unwrap();
    }
    folder
}

#[test]
fn one_bad_item_does_not_stop_the_rest() {
    let folder = folder(&["a", "b", "c"]);
    let source = folder.path().to_str().unwrap();
    for (status, code) in
        [(400, "KeyTooLongError"), (400, "InvalidArgument"), (405, "MethodNotAllowed"), (416, "X"), (501, "Y")]
    {
        let server = Server::start(move |asked| {
            let refused = asked.line.ends_with("/b");
            Some(if refused { Answer::refusal(status, code) } else { Answer::new(200, "") })
        });
        // Without a checksum: a server that offers no such thing is asked again without.
        let output = run(&server, &["cp", "-r", source, "s3://bucket/p", "--checksum", "none"]);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{status} {code}: {stderr}");
        assert_eq!(server.lines(), ["PUT /bucket/p/a", "PUT /bucket/p/b", "PUT /bucket/p/c"], "{status} {code}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
}

#[test]
fn a_key_that_cannot_be_is_no_usage_error() {
    let folder = folder(&["a", "b-is-too-long", "c"]);
    let source = folder.path().to_str().unwrap();
    let server = Server::start(|_| Some(Answer::new(200, "")));
    // With its slash and a name of one byte exactly the 1,024 that S3 allows.
    let prefix = format!("s3://bucket/{}", "p".repeat(1022));
    let output = run(&server, &["cp", "-r", source, &prefix]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert_eq!(server.count("PUT "), 2);
    let alone = run(&server, &["cp", &format!("{source}/a"), &format!("{prefix}ppp")]);
    assert_eq!(alone.status.code(), Some(3), "{}", text(&alone.stderr));
}

#[test]
fn a_bucket_that_is_elsewhere_stops_the_job() {
    let names: Vec<String> = (10..60).map(|number| number.to_string()).collect();
    let folder = folder(&names.iter().map(String::as_str).collect::<Vec<_>>());
    for (status, code) in
        [(301, "PermanentRedirect"), (307, "TemporaryRedirect"), (400, "AuthorizationHeaderMalformed")]
    {
        let server = Server::start(move |_| Some(Answer::refusal(status, code)));
        let output = run(&server, &["cp", "-r", folder.path().to_str().unwrap(), "s3://bucket"]);
        assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
        assert!(server.count("PUT ") < 10, "{code}: {} were tried", server.count("PUT "));
    }
}

/// A bucket with three objects. The answer to their deletion names two as deleted, and of the third what is given.
fn bucket_that_keeps(answer: &'static str) -> Server {
    Server::start(move |asked| {
        Some(match asked.line.split(' ').next() {
            Some("GET") => {
                let object = |key| format!("<Contents><Key>{key}</Key><Size>1</Size></Contents>");
                let objects: String = ["a", "b", "c"].map(object).concat();
                Answer::new(
                    200,
                    format!("<ListBucketResult><IsTruncated>false</IsTruncated>{objects}</ListBucketResult>"),
                )
            }
            Some("POST") => {
                let deleted = ["a", "c"].map(|key| format!("<Deleted><Key>{key}</Key></Deleted>")).concat();
                Answer::new(200, format!("<DeleteResult>{deleted}{answer}</DeleteResult>"))
            }
            _ => Answer::new(204, ""),
        })
    })
}

#[test]
fn a_deletion_that_failed_counts_whatever_key_the_server_names() {
    for (answer, hint) in [
        ("<Error><Key>b</Key><Code>AccessDenied</Code><Message>no</Message></Error>", "s3://bucket/b: no"),
        ("<Error><Code>InternalError</Code><Message>no</Message></Error>", "whose key the server does not tell"),
        ("<Error><Key>B</Key><Code>InternalError</Code><Message>no</Message></Error>", "s3://bucket/B, a key that was"),
    ] {
        let server = bucket_that_keeps(answer);
        let output = run(&server, &["rm", "-r", "s3://bucket"]);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{answer}: {stderr}");
        assert!(stderr.contains(hint), "{stderr}");
        let output = run(&server, &["rb", "--force", "s3://bucket"]);
        assert_eq!(output.status.code(), Some(1), "{answer}");
        assert_eq!(server.count("DELETE "), 0, "the bucket is not empty, and stays: {:?}", server.lines());
    }
    // Each of them counts.
    let nameless = "<Error><Code>InternalError</Code></Error><Error><Code>InternalError</Code></Error>";
    let output = run(&bucket_that_keeps(nameless), &["--json", "rm", "-r", "s3://bucket"]);
    let summary: serde_json::Value = serde_json::from_str(text(&output.stdout).lines().last().unwrap()).unwrap();
    assert_eq!(summary["failed"], 2);
}

#[test]
fn all_are_deleted_when_the_server_names_all() {
    let server = bucket_that_keeps("<Deleted><Key>b</Key></Deleted>");
    let output = run(&server, &["rb", "--force", "s3://bucket"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(server.count("DELETE /bucket"), 1);
}

#[test]
fn peak_memory_is_the_programs_own() {
    let server = Server::start(|asked| Some(Answer::part(b"content", asked)));
    // What the kernel would hand on as the child's `ru_maxrss`.
    let ours = vec![1_u8; 256 << 20];
    let output = run(&server, &["--json", "bench", "get", "s3://bucket/k", "--rounds", "1"]);
    assert_eq!(black_box(&ours)[ours.len() - 1], 1);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let peak = report["peak_rss_bytes"].as_u64().unwrap();
    assert!(peak > 0 && peak < 128 << 20, "{peak}");
    assert!(report["socket_memory_bytes"].as_u64().unwrap() > 0, "a connection was open: {report}");
}

#[test]
fn the_bar_knows_the_size_without_a_request_of_its_own() {
    let object = vec![7; 3 << 20];
    let server = Server::start(move |asked| Some(Answer::part(&object, asked).pause(Duration::from_millis(600))));
    let folder = tempfile::tempdir().unwrap();
    let terminal = nix::pty::openpty(None, None).unwrap();
    let mut child = process()
        .args(["--endpoint-url", &server.endpoint, "cp", "s3://bucket/k", folder.path().to_str().unwrap()])
        .args(["--checksum-mode", "DISABLED"])
        .env("TERM", "xterm")
        .stdout(Stdio::null())
        .stderr(terminal.slave)
        .spawn()
        .unwrap();
    let mut screen = fs::File::from(terminal.master);
    let shown = thread::spawn(move || {
        // Reading a terminal that its last writer has closed fails: that is its end.
        let (mut shown, mut bytes) = (Vec::new(), [0; 4096]);
        while let Ok(count @ 1..) = screen.read(&mut bytes) {
            shown.extend_from_slice(&bytes[..count]);
        }
        String::from_utf8_lossy(&shown).into_owned()
    });
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let shown = shown.join().unwrap();
    assert!(shown.contains("of 3.00 MiB"), "{shown}");
    assert!(server.lines().iter().all(|line| line.starts_with("GET /bucket/k")), "{:?}", server.lines());
}

/// Runs `start` while this thread, and so what it starts, may use one core alone.
fn on_one_core<T>(start: impl FnOnce() -> T) -> T {
    let (this, all) = (Pid::from_raw(0), sched_getaffinity(Pid::from_raw(0)).unwrap());
    let mut one = CpuSet::new();
    let first = (0..CpuSet::count()).find(|core| all.is_set(*core).unwrap()).unwrap();
    one.set(first).unwrap();
    sched_setaffinity(this, &one).unwrap();
    let started = start();
    sched_setaffinity(this, &all).unwrap();
    started
}

#[test]
fn an_interrupted_upload_is_aborted_also_on_one_core() {
    const MIB: usize = 1 << 20;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), vec![7; 24 * MIB]).unwrap();
    let source = folder.path().to_str().unwrap();
    let one = format!("{source}/a");
    for arguments in [&["cp", "-r", source, "s3://bucket"][..], &["cp", &one, "s3://bucket/a"]] {
        for one_core in [true, false] {
            let server = Server::start(|asked| match asked.line.split(' ').next() {
                Some("POST") => Some(Answer::new(
                    200,
                    "<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>",
                )),
                Some("DELETE") => Some(Answer::new(204, "")),
                _ => None,
            });
            let start = || {
                process()
                    .args(["--endpoint-url", &server.endpoint, "--part-size", "8MiB"])
                    .args(arguments)
                    .stdout(Stdio::null())
                    .stderr(Stdio::piped())
                    .spawn()
                    .unwrap()
            };
            let child = if one_core { on_one_core(start) } else { start() };
            server.wait_for("PUT /bucket/a?");
            let signalled = Instant::now();
            kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
            let output = child.wait_with_output().unwrap();
            let took = signalled.elapsed();
            assert_eq!(output.status.code(), Some(130), "{arguments:?}: signal {:?}", output.status.signal());
            assert!(took < Duration::from_secs(1), "{arguments:?} took {took:?}");
            // Twice: a part that was on its way may arrive behind the first.
            assert_eq!(
                server.count("DELETE /bucket/a?"),
                2,
                "{arguments:?}, one core {one_core}: {:?}",
                server.lines()
            );
        }
    }
}

#[test]
fn an_interrupted_pipe_aborts_its_upload() {
    let server = Server::start(|asked| match asked.line.split(' ').next() {
        Some("POST") => Some(Answer::new(
            200,
            "<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>",
        )),
        Some("DELETE") => Some(Answer::new(204, "")),
        _ => None,
    });
    let mut child = process()
        .args(["--endpoint-url", &server.endpoint, "--part-size", "8MiB", "pipe", "s3://bucket/a"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // More is to come, and never does: the program waits for it when the signal arrives.
    let mut input = child.stdin.take().unwrap();
    input.write_all(&vec![7; 20 << 20]).unwrap();
    server.wait_for("PUT /bucket/a?");
    let signalled = Instant::now();
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    let took = signalled.elapsed();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_eq!(server.count("DELETE /bucket/a?"), 2, "{:?}", server.lines());
    drop(input);
}

#[test]
fn an_input_that_cannot_be_read_stores_nothing() {
    let server = Server::start(|_| Some(Answer::new(200, "")));
    let folder = tempfile::tempdir().unwrap();
    let output = process()
        .args(["--endpoint-url", &server.endpoint, "pipe", "s3://bucket/a"])
        .stdin(fs::File::open(folder.path()).unwrap())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("directory"), "{}", text(&output.stderr));
    assert!(server.lines().is_empty(), "{:?}", server.lines());
}

#[test]
fn a_job_that_stops_early_aborts_what_it_leaves() {
    let folder = folder(&["b"]);
    fs::write(folder.path().join("a"), vec![7; 24 << 20]).unwrap();
    let part_came = AtomicBool::new(false);
    let server = Server::start(move |asked| match asked.line.as_str() {
        line if line.starts_with("POST ") => Some(Answer::new(
            200,
            "<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>",
        )),
        line if line.starts_with("DELETE ") => Some(Answer::new(204, "")),
        line if line.starts_with("PUT /bucket/a?") => {
            part_came.store(true, Ordering::SeqCst);
            None
        }
        _ => {
            while !part_came.load(Ordering::SeqCst) {
                thread::sleep(Duration::from_millis(2));
            }
            Some(Answer::refusal(301, "PermanentRedirect"))
        }
    });
    let output = wirespeed()
        .args(["--endpoint-url", &server.endpoint, "--part-size", "8MiB"])
        .args(["cp", "-r", folder.path().to_str().unwrap(), "s3://bucket"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert_eq!(server.count("DELETE /bucket/a?"), 2, "{:?}", server.lines());
}

/// Answers as rclone and gofakes3 do: no suffix is longer than the object, and no refusal says its size.
fn without_sizes(object: &'static [u8], refusal: fn() -> Answer) -> Server {
    Server::start(move |asked| {
        Some(match (asked.range, asked.suffix()) {
            (Some((first, _)), _) if first >= object.len() => refusal(),
            (_, Some(length)) if length > object.len() => refusal(),
            (None, None) => Answer::new(200, object),
            _ => Answer::part(object, asked),
        })
    })
}

#[test]
fn a_suffix_longer_than_the_object_is_all_of_it() {
    let server = without_sizes(b"content", || Answer::refusal(416, "InvalidRange"));
    let output = run(&server, &["cat", "s3://bucket/key", "--range", "-100"]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), "content".into()), "{}", text(&output.stderr));
    let output = run(&server, &["cat", "s3://bucket/key", "--range", "100-200"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(3), 0));
    assert!(
        text(&output.stderr).contains("beyond the end of the object, which has 7 bytes"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn an_empty_object_is_read_where_the_refusal_says_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = without_sizes(b"", || Answer::new(416, ""));
    let output = run(&server, &["cat", "s3://bucket/key"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0), "{}", text(&output.stderr));
    let file = folder.path().join("file");
    let output = run(&server, &["cp", "s3://bucket/key", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(fs::read(file).unwrap(), b"");
}

#[test]
fn cp_and_cat_read_from_a_server_without_ranges_or_lengths() {
    let object: Vec<u8> = (0..1_000_000u32).map(|at| (at ^ (at >> 8)) as u8).collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    type Make = fn(&[u8]) -> Answer;
    let answers: [(&str, Make); 4] = [
        ("no ranges", |object| Answer::new(200, object)),
        ("ranges that are announced only", |object| Answer::new(200, object).head("accept-ranges: bytes\r\n")),
        ("no length", |object| Answer::new(200, object).chunked()),
        ("no length, ranges announced", |object| Answer::new(200, object).head("accept-ranges: bytes\r\n").chunked()),
    ];
    for (name, answer) in answers {
        let content = object.clone();
        let server = Server::start(move |_| Some(answer(&content)));
        let small = ["--set", "part_size=64KiB", "s3://bucket/key"];
        let output = run(&server, &[&["cat"], &small[..]].concat());
        assert_eq!(output.status.code(), Some(0), "{name}: {}", text(&output.stderr));
        assert!(output.stdout == object, "{name}: {} bytes", output.stdout.len());
        let output = run(&server, &[&["cp"], &small[..], &[file.to_str().unwrap()]].concat());
        assert_eq!(output.status.code(), Some(0), "{name}: {}", text(&output.stderr));
        assert!(fs::read(&file).unwrap() == object, "{name}");
        fs::remove_file(&file).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{name}");
    }
}

#[test]
fn a_key_that_no_store_has_is_an_error_and_costs_no_memory() {
    let page = |key: &str| {
        format!(
            "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>{key}</Key><Size>1</Size></Contents>\
             </ListBucketResult>"
        )
    };
    let page = page(&"k".repeat(5_000_000));
    let server = Server::start(move |_| Some(Answer::new(200, page.clone())));
    for command in [&["ls", "-r"][..], &["du"]] {
        // 1 GB of addresses: with 640 bytes for each of the key's it took three times as much.
        let output = std::process::Command::new("sh")
            .args([
                "-c",
                "ulimit -v 1000000; exec \"$0\" \"$@\"",
                env!("CARGO_BIN_EXE_wirespeed"),
                "--endpoint-url",
                &server.endpoint,
            ])
            .args(["--set", "max_attempts=1", "--memory", "64MiB"])
            .args(command)
            .arg("s3://bucket/")
            .env("AWS_ACCESS_KEY_ID", "id")
            .env("AWS_SECRET_ACCESS_KEY", "secret")
            .output()
            .unwrap();
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{stderr}");
        assert!(stderr.contains("more than 12288 bytes") && stderr.len() < 1000, "{stderr}");
    }
}
