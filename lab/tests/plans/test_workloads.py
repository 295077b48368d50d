"""Workload files: what is read, and that every mistake is told with its file and field."""

import pytest
from wirespeed_lab import plans
from wirespeed_lab.plans import BadWorkload, Plan, Workload

GOOD = """
version = 1
title = "some objects"
operation = "get"
sink = "memory"
concurrency = 4
part_size = "8 MiB"

[objects]
prefix = "p/"
count = 10
size = "1 MiB"
"""


@pytest.fixture
def load(tmp_path):
    def from_text(text):
        path = tmp_path / "mine.toml"
        path.write_text(text)
        return plans.load(path)

    return from_text


def test_a_file_is_a_workload(load):
    made = load(GOOD).compile()
    assert (made.workload, made.operation, made.sink) == ("mine", "get", "memory")
    assert (made.concurrency, made.part_size, made.checksums) == (4, 8 << 20, None)
    assert (made.objects, made.bytes) == (10, 10 << 20)
    assert [item.key for item in made.work[:2]] == ["p/00000000", "p/00000001"]


@pytest.mark.parametrize("name", plans.names())
def test_each_of_the_labs_own_compiles_in_every_cell(name):
    workload = plans.load(name)
    for cell in workload.cells():
        made = workload.compile(0.02, **cell)
        assert made.scale == 0.02
        assert made.work
        for setting, value in cell.items():
            assert getattr(made, setting, value) == value
        assert Plan.from_json(made.as_json()) == made


@pytest.mark.parametrize("seed", ["000", "001", "002", "003", "004"])
def test_every_seed_has_its_workloads(seed):
    assert any(plans.load(name).seed == seed for name in plans.names())


@pytest.mark.parametrize(
    ("name", "objects", "size"),
    [
        ("seed000-get", 10_000, 10_000 << 20),
        ("seed000-put", 10_000, 10_000 << 20),
        ("seed001-memory", 1, 30 << 30),
        ("seed002-memory", 1, 3 * 10**9),
        ("seed003-list", 400_000, 0),
        ("seed004-put", 5_000, 50_000 << 20),
        ("quick", 64, 512 << 20),
    ],
)
def test_unscaled_they_are_as_large_as_they_were_published(name, objects, size):
    made = plans.load(name).compile()
    assert (made.objects, made.bytes) == (objects, size)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("version = 1", "version = 2", "version is 2, and this lab knows workloads up to 1"),
        ("version = 1", "", "version is missing"),
        ("version = 1", "version = true", "version is True, and must be a whole number"),
        ("version = 1", 'version = "1"', "version is '1', and must be a whole number"),
        (
            "concurrency = 4",
            "concurrencies = 4",
            "no field 'concurrencies'; did you mean concurrency?",
        ),
        ("concurrency = 4", "concurrency = 0", "concurrency is 0, and must be"),
        ("concurrency = 4", "concurrency = 4.0", "concurrency is 4.0, and must be"),
        ('"8 MiB"', '"8 mib"', "part_size is '8 mib', and must be a size"),
        ('"8 MiB"', '"-1 MiB"', "part_size is '-1 MiB', and must be a size"),
        ('"8 MiB"', "0", "part_size is 0, and must be a size of at least one byte"),
        ('"8 MiB"', '"0.3 B"', "part_size is '0.3 B', and must be a size of whole bytes"),
        ('"memory"', '"tape"', "sink is 'tape', and must be one of discard, memory, stream, file"),
        ('"get"', '"head"', "operation is 'head', and must be one of get, put, list"),
        ('"get"', '"list"', "operation is 'list', and must be one of ('get', 'put') here"),
        ('"get"', '"put"', "sink is 'memory', and must be left out: a put has none"),
        ('"some objects"', '""', "title is '', and must be text"),
        ("count = 10", "count = 10\nkeys = 3", "[objects]: there is no field 'keys'"),
        ("count = 10", "", "[objects]: count is missing"),
        ("count = 10", "count = 99_999_999_999", "[objects]: count is 99999999999, and must be"),
        ("[objects]", "[things]", "there must be exactly one of [objects], [object]"),
        ("[objects]", "[object]\nkey='a'\nsize=1\n[objects]", "is [objects] and [object]"),
        ("[objects]", "[sweep]\nsize = []\n[objects]", "[sweep]: size is [], and must be a list"),
        ("[objects]", "[sweep]\nspeed = [1]\n[objects]", "[sweep]: there is no field 'speed'"),
        ("[objects]", "[sweep]\nconcurrency=[1,1]\n[objects]", "a list without repetition"),
        ("[objects]", "objects = 3\n[other]", "[objects]: is 3, and must be a table"),
        ("[objects]", "[objects", "is not TOML"),
    ],
)
def test_a_mistake_is_told_with_the_file_and_the_field(load, tmp_path, old, new, said):
    assert old in GOOD
    with pytest.raises(BadWorkload) as error:
        load(GOOD.replace(old, new))
    assert str(error.value).startswith(str(tmp_path / "mine.toml"))
    assert said in str(error.value)


def test_an_unknown_name_is_told_with_those_that_there_are():
    with pytest.raises(BadWorkload, match=r"there is no workload 'quickly': there are .*quick"):
        plans.load("quickly")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: None, "cannot be read: No such file"),
        (lambda path: path.mkdir(), "cannot be read: Is a directory"),
        (lambda path: path.write_bytes(b"\xff\xfe"), "is not UTF-8 at byte 0"),
        (lambda path: path.write_bytes(b"#" * (5 << 20)), "longer than"),
    ],
)
def test_a_file_that_cannot_be_read_is_told(tmp_path, make, said):
    path = tmp_path / "mine.toml"
    make(path)
    with pytest.raises(BadWorkload, match=said):
        plans.load(str(path))


@pytest.mark.parametrize(
    "arguments",
    [
        {"scale": 0},
        {"scale": float("nan")},
        {"scale": -1},
        {"concurrency": 0},
        {"part_size": -1},
        {"checksums": 1},
        {"size": 1 << 60},
    ],
)
def test_a_plan_is_not_made_of_nonsense(load, arguments):
    with pytest.raises(BadWorkload, match=next(iter(arguments))):
        load(GOOD).compile(**arguments)


def test_a_sweep_has_a_cell_for_each_combination(load):
    axes = '[sweep]\nconcurrency = [1, 2]\npart_size = ["1 MiB", 7]\n[objects]'
    cells = load(GOOD.replace("[objects]", axes)).cells()
    assert {(cell["concurrency"], cell["part_size"]) for cell in cells} == {
        (1, 1 << 20),
        (1, 7),
        (2, 1 << 20),
        (2, 7),
    }
    assert load(GOOD).cells() == [{}]


def test_a_scale_is_found_for_what_a_machine_carries():
    workload = plans.load("seed001-memory")
    scale = workload.scale_for(1 << 30)
    assert workload.compile(scale).bytes <= 1 << 30
    assert plans.load("quick").scale_for(1 << 40) == 1
    listing = plans.load("seed003-list")
    assert listing.compile(listing.scale_for(50_000)).objects <= 50_000


def test_a_listing_goes_with_objects_alone(load):
    text = GOOD.replace("[objects]", "listing = true\n[objects]")
    assert load(text).compile().listing == "p/"
    with pytest.raises(BadWorkload, match="listing is True, and must be false"):
        load(
            text.replace("[objects]", "[ranges]")
            .replace("prefix", "key")
            .replace("count = 10", "count = 10\nlength = 1\nrandom_seed = 1")
        )


def test_workloads_are_values():
    table = {
        "version": 1,
        "title": "t",
        "operation": "list",
        "prefix": {"name": "k/", "keys": 3},
    }
    assert Workload.from_table(table, "a", "a") == Workload.from_table(dict(table), "a", "a")
