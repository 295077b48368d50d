"""Presets: what is known of a store, scaled, in the embedded server's flags."""

import pytest
from wirespeed_lab.stores import BadPreset, load_preset, preset_names

#: Bytes a second that one core serves, whatever the machine.
CARRIED = 2e9


def write(tmp_path, text):
    path = tmp_path / "made.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", preset_names())
def test_each_is_what_a_machine_carries_and_says_its_sources(name):
    preset = load_preset(name)
    assert preset.title
    assert preset.why
    tables = {
        "first_byte": preset.true.first_byte,
        "connection": preset.true.down,
        "nic": preset.true.nic,
        "prefix": preset.true.reads,
    }
    assert set(preset.sources) == {table for table, claim in tables.items() if claim}
    assert preset.claims.nic is None or preset.claims.nic.burst <= CARRIED
    assert preset.as_json()["flags"] == preset.flags()


def test_the_five_instance_types_burst_as_their_report_says():
    gbit = 1e9 / 8
    stated = {
        "c5n.9xlarge": (50, 50),
        "c5n.xlarge": (5, 25),
        "m5.large": (0.75, 10),
        "t3.xlarge": (1, 5),
        "t3.medium": (0.256, 5),
    }
    for name, (baseline, burst) in stated.items():
        nic = load_preset(name).true.nic
        assert (nic.baseline, nic.burst) == (baseline * gbit, burst * gbit)


def test_bytes_are_scaled_and_time_is_not(tmp_path):
    path = write(
        tmp_path,
        """
        title = "Made"
        [scale]
        bytes = 0.5
        burst_time = 0.1
        why = "to see"
        [first_byte]
        p50_ms = 27
        p95_ms = 75
        source = "made"
        [connection]
        down = "90 MB/s"
        source = "made"
        [nic]
        baseline = "1 Gbit/s"
        burst = "5 Gbit/s"
        burst_seconds = 100
        source = "made"
        [prefix]
        reads = 5500
        writes = 3500
        source = "made"
        """,
    )
    preset = load_preset(path)
    assert preset.true.nic.burst_seconds == pytest.approx(100)
    assert preset.claims.nic.burst_seconds == pytest.approx(10)
    assert preset.flags() == (
        *("--model-seed", "1"),
        *("--first-byte", "27ms..75ms"),
        *("--connection-down", "45000000B/s"),
        *("--nic", "62500000B/s,312500000B/s,2500000000B"),
        *("--prefix-requests", "5500,3500"),
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("title = 1", "title is 1"),
        ('title = "x"\n[nic]\nbaseline = "1 GB/s"', "source is missing"),
        ('title = "x"\n[nic]\nbaseline = "fast"\nsource = "y"', 'such as "90 MB/s"'),
        ('title = "x"\n[nic]\nbaseline = "0 MB/s"\nsource = "y"', "a rate above 0"),
        ('title = "x"\n[scale]\nbytes = 2', "bytes is 2"),
        ('title = "x"\n[latency]\np50_ms = 1', "no field 'latency'"),
        ('title = "x"\n[first_byte]\np50_ms = 9\np95_ms = 2\nsource = "y"', "p95_ms is 2"),
        (
            'title = "x"\n[nic]\nbaseline = "2 MB/s"\nburst = "1 MB/s"\nburst_seconds = 1\n'
            'source = "y"',
            "at least the baseline",
        ),
        ("title = ", "is not TOML"),
    ],
)
def test_one_that_cannot_be_understood_is_refused(tmp_path, text, said):
    path = write(tmp_path, text)
    with pytest.raises(BadPreset) as caught:
        load_preset(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


def test_one_that_is_not_there_names_those_that_are(tmp_path):
    with pytest.raises(BadPreset, match=r"no preset 's4'.*s3-100g"):
        load_preset("s4")
    with pytest.raises(BadPreset, match="cannot be read"):
        load_preset(tmp_path / "none.toml")
    (tmp_path / "not-text.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadPreset, match="is not TOML"):
        load_preset(tmp_path / "not-text.toml")
