"""The checker of dependency directions finds what it is there to find."""

from pathlib import Path

import directions
import pytest

ROOT = Path(__file__).parent.parent


def test_this_tree_points_the_right_way():
    assert list(directions.tree(ROOT)) == []


@pytest.mark.parametrize(
    ("name", "source", "room"),
    [
        ("wire/sign.rs", "use crate::net::Pool;", "net"),
        ("wire/mod.rs", "use crate::{error::Error, transfer::get};", "transfer"),
        ("plan.rs", "fn f() -> crate::client::Client { loop {} }", "client"),
        ("plan.rs", "mod tests { use super::super::wire::Head; }", "wire"),
        ("buffer/pool.rs", "use super::super::plan::Part;", "plan"),
        ("net/pool.rs", "use super::super::transfer::get::Get as G;", "transfer"),
        ("net/pool.rs", "pub(crate) use crate::{\n  net::x,\n  client::{self, A},\n};", "client"),
        ("transfer/get.rs", "/* crate::x */ type C = crate::client::Client;", "client"),
        ("error.rs", "use crate::wire::Head;", "wire"),
        ("wire/sign.rs", "use crate::config::Config;", "config"),
    ],
)
def test_an_arrow_the_wrong_way_is_found(name, source, room):
    (wrong,) = directions.engine(name, source)
    assert f"names `{room}`" in wrong


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("client.rs", "use crate::transfer::get; use crate::{net, wire::{sign, head}};"),
        ("transfer/get.rs", "use super::put::Put; use crate::pace::Slot; use tokio::net;"),
        ("net/pool.rs", "mod tests { use super::*; use crate::pace::Slot; }"),
        ("net/pool.rs", "fn f<'a>() -> impl Future + use<'a> { x }; use crate::pace::Slot;"),
        ("wire/sign.rs", "use super::head::Head; use crate::error::Error;"),
        ("wire/sign.rs", "// use crate::net::Pool;\n/// crate::net\nfn f() {}"),
        ("wire/sign.rs", 'const A: &str = "crate::net::Pool"; const B: &str = r#"tokio::"#;'),
        ("wire/sign.rs", "fn f<'a>(x: &'a str) -> char { '\"' }"),
        ("lib.rs", "mod client; pub use crate::client::Client;"),
    ],
)
def test_an_arrow_the_right_way_is_let_pass(name, source):
    assert list(directions.engine(name, source)) == []


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("wire/sign.rs", "use tokio::io::AsyncRead;"),
        ("buffer/mod.rs", "fn f() { ::tokio::spawn(async {}); }"),
        ("plan.rs", "use std::{io, time::Instant};"),
        ("wire/head.rs", "fn f() { std::fs::read(p); }"),
    ],
)
def test_the_runtime_in_a_room_without_one_is_found(name, source):
    assert len(list(directions.engine(name, source))) == 1


def test_a_room_without_a_rank_is_found():
    assert len(list(directions.engine("helpers/mod.rs", ""))) == 1


def test_a_line_number_survives_comments_and_strings():
    source = '/* one\n two */ const A: &str = "x\ny";\nuse crate::net::Pool;'
    (wrong,) = directions.engine("wire/a.rs", source)
    assert wrong.startswith("engine/src/wire/a.rs:4:")


@pytest.mark.parametrize(
    ("crate", "body"),
    [
        ("wirespeed-origin", "[dependencies]\nwirespeed.workspace = true"),
        ("wirespeed-origin", '[dev-dependencies]\nengine = { package = "wirespeed", path = "x" }'),
        ("wirespeed-origin", "[target.'cfg(unix)'.dependencies]\nw = { workspace = true }"),
        ("wirespeed", '[dependencies]\nwirespeed-origin = { path = "../origin" }'),
        ("wirespeed", '[build-dependencies]\nwirespeed-cli = "0.1"'),
    ],
)
def test_a_crate_that_needs_the_wrong_one_is_found(crate, body):
    text = f'[package]\nname = "{crate}"\n{body}\n'
    assert len(list(directions.manifest("m", text, {"w": {"package": "wirespeed"}}))) == 1


def test_a_crate_may_start_the_server_in_its_tests():
    text = '[package]\nname = "wirespeed"\n[dev-dependencies]\nwirespeed-origin = "0.1"\n'
    assert list(directions.manifest("m", text, {})) == []


@pytest.mark.parametrize("line", ["import boto3", "from wirespeed import Client", "import s3fs.x"])
def test_a_client_inside_the_lab_is_found(line):
    assert len(list(directions.lab("lab/a.py", line))) == 1


@pytest.mark.parametrize(("room", "wrong"), [("stores", 0), ("cloud", 0), ("sessions", 1)])
def test_what_measures_nothing_may_import_boto3(room, wrong):
    name = f"lab/wirespeed_lab/{room}/a.py"
    assert len(list(directions.lab(name, "import boto3.s3.transfer"))) == wrong
    assert len(list(directions.lab(name, "import wirespeed"))) == 1


def test_the_lab_may_import_itself():
    assert list(directions.lab("a.py", "import wirespeed_lab.demo\nfrom . import boto3")) == []
