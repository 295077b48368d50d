"""`cloud run`, `sweep` and `prices` as a person types them."""

import argparse
import os
import signal

import pytest
from wirespeed_lab.cloud import command, fleet, sweep
from wirespeed_lab.hosts import command as hosts_command


def typed(*words):
    parser = argparse.ArgumentParser()
    command.add(parser.add_subparsers())
    args = parser.parse_args(["cloud", *map(str, words)])
    return args.run(args)


@pytest.fixture
def words(tmp_path, image):
    setup = tmp_path / "setup.sh"
    setup.write_text("true\n")
    return [
        *("run", "quick-get", "--clients", "boto3-get", "--server", "https://s3.example"),
        *("--type", "c5n.large", "--count", 2, "--minutes", 30, "--budget", 1),
        *("--region", "us-east-1", "--setup", setup, "--from", "192.0.2.7/32", "--image", image),
    ]


@pytest.fixture
def measured(monkeypatch):
    """Agents answer at once, and a measurement is what a test makes of it."""
    calls = []

    def run(args):
        calls.append(args)
        calls.append(args.token_file.read_text())
        assert args.token_file.stat().st_mode & 0o077 == 0
        return 0

    monkeypatch.setattr(command, "wait_for_agents", lambda *_: None)
    monkeypatch.setattr(hosts_command, "run", run)
    return calls


def test_without_launch_nothing_is_launched(words, measured, alive, capsys):
    assert typed(*words, "--confirm-prices") == 0
    said = capsys.readouterr().out
    assert "2 x c5n.large" in said
    assert "costs 0.14 USD at most" in said
    assert "Nothing was launched" in said
    assert measured == []
    assert alive() == []


def test_a_launch_measures_on_its_machines_and_removes_them(words, measured, ec2, alive, capsys):
    assert typed(*words, "--confirm-prices", "--launch") == 0
    args, token = measured
    assert len(args.hosts.split(",")) == 2
    assert all(host.endswith(":7171") for host in args.hosts.split(","))
    assert len(token) == 64
    assert token not in capsys.readouterr().out
    assert not args.token_file.exists()
    assert alive() == []
    assert sweep.find(ec2) == []


def test_a_measurement_that_fails_leaves_nothing(words, measured, monkeypatch, ec2, alive):
    monkeypatch.setattr(hosts_command, "run", lambda _: 1)
    assert typed(*words, "--confirm-prices", "--launch") == 1
    assert alive() == []

    def killed(_):
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(hosts_command, "run", killed)
    assert typed(*words, "--confirm-prices", "--launch") == 130
    assert alive() == []
    assert sweep.find(ec2) == []


def test_agents_that_never_answer_are_given_up_and_nothing_is_left(
    words, monkeypatch, ec2, alive, capsys
):
    def unreachable(hosts, _):
        raise fleet.CloudFailed(f"the agent at {hosts[0][0]} does not answer")

    monkeypatch.setattr(command, "wait_for_agents", unreachable)
    assert typed(*words, "--confirm-prices", "--launch") == 1
    assert "does not answer" in capsys.readouterr().err
    assert sweep.find(ec2) == []


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([], "--confirm-prices"),
        (["--confirm-prices", "--budget", "0.13"], "the budget is 0.13"),
        (["--confirm-prices", "--count", "0"], "--count 0"),
        (["--confirm-prices", "--minutes", "1441"], "--minutes 1441"),
        (["--confirm-prices", "--type", "z9.big"], "no price of z9.big"),
        (["--confirm-prices", "--region", "eu-west-1"], "eu-west-1 has others"),
        (["--confirm-prices", "--from", "0.0.0.0/0"], "not everybody"),
        (["--confirm-prices", "--from", "here"], "here"),
        (["--confirm-prices", "--port", "22"], "--port 22"),
        (["--prices", "/nowhere.toml"], "nowhere.toml"),
        (["--confirm-prices", "--setup", "/nowhere.sh"], "nowhere.sh"),
    ],
)
def test_what_is_not_confirmed_or_makes_no_sense_is_refused_before_a_launch(
    words, measured, alive, capsys, more, said
):
    assert typed(*words, "--launch", *more) == 2
    assert said in capsys.readouterr().err
    assert measured == []
    assert alive() == []


def test_prices_of_ones_own_need_no_confirmation(words, measured, tmp_path, capsys):
    file = tmp_path / "mine.toml"
    file.write_text('region = "us-east-1"\nas_of = "today"\n[usd_per_hour]\n"c5n.large" = 0.5\n')
    assert typed(*words, "--prices", file) == 0
    assert "costs 0.60 USD at most" in capsys.readouterr().out


def test_sweep_shows_first_and_removes_when_told(ec2, launch, alive, capsys):
    fleet._launch(ec2, launch, launch.image, lambda _: None)
    assert typed("sweep", "--region", "us-east-1", "--region", "eu-west-1") == 0
    said = capsys.readouterr().out
    assert "found instance i-" in said
    assert "eu-west-1: nothing carries the lab's tag" in said
    assert len(alive()) == 2
    assert typed("sweep", "--region", "us-east-1", "--remove") == 0
    assert "us-east-1: removed instance" in capsys.readouterr().out
    assert alive() == []


def test_prices_are_printed(capsys):
    assert typed("prices") == 0
    assert "c5n.9xlarge" in capsys.readouterr().out


def test_waiting_for_agents_ends_with_the_time(monkeypatch):
    monkeypatch.setattr(command, "LOOK", 0.0)

    def refuse(address, timeout):
        raise ConnectionRefusedError("refused")

    with pytest.raises(fleet.CloudFailed, match=r"192\.0\.2\.1:7171 does not answer \(refused\)"):
        command.wait_for_agents([("192.0.2.1", 7171)], 0.0, refuse)
