//! The program under test, in an environment of its own.

#![allow(dead_code, reason = "each test file uses its own share of it")]

use std::process::Command as Process;

use assert_cmd::Command;

/// A command with credentials and nothing else of this machine's environment that could steer it.
pub(crate) fn wirespeed() -> Command {
    let mut command = Command::from_std(process());
    command.timeout(std::time::Duration::from_secs(60));
    command
}

/// The same for a test that speaks with it while it runs.
pub(crate) fn process() -> Process {
    let mut command = Process::new(assert_cmd::cargo::cargo_bin!("wirespeed"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("AWS_") || name.to_string_lossy().starts_with("WIRESPEED_") {
            command.env_remove(name);
        }
    }
    command
        .env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        .env("AWS_SECRET_ACCESS_KEY", "a-secret-that-must-not-show")
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ENDPOINT_URL", "http://127.0.0.1:1");
    command
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
