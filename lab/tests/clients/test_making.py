"""Clients are made by what `clients.toml` says; what fails is told, and the rest goes on."""

import pytest
from wirespeed_lab import environments, places
from wirespeed_lab.clients import __main__ as command
from wirespeed_lab.clients import making, registry, setup
from wirespeed_lab.clients.registry import read

FILE = """
[builds.program]
what = "a program"
run = ["sh", "-c", "echo made >> {tools}/log; touch {tools}/{id}; chmod +x {tools}/{id}"]

[builds.broken]
what = "fails"
run = ["sh", "-c", "echo tried >> {tools}/log; echo the reason >&2; exit 3"]

[builds.needy]
what = "wants what no machine has"
tools = ["no-such-program-anywhere"]
run = ["true"]

[builds.environment]
what = "an environment"

[clients.good]
language = "c"
title = "good"
family = "f"
command = ["{tools}/good"]
build = "program"

[clients.bad]
language = "c"
title = "bad"
family = "f"
command = ["{tools}/bad"]
build = "broken"

[clients.worse]
language = "c"
title = "worse"
family = "f"
command = ["{tools}/bad", "worse"]
build = "broken"

[clients.needy]
language = "c"
title = "needy"
family = "f"
command = ["{tools}/needy"]
build = "needy"

[clients.gone]
language = "c"
title = "gone"
family = "f"
unavailable = "the registry says no"

[clients.python]
language = "python"
title = "in Python"
family = "f"
command = ["{python}", "{drivers}/empty/driver.py"]
environment = "empty"
build = "environment"
"""


@pytest.fixture
def clients(tmp_path, monkeypatch):
    """The registry above, with folders of its own for all that is made."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "drivers" / "empty").mkdir(parents=True)
    (tmp_path / "drivers" / "empty" / "requirements.txt").write_text("# nothing\n")
    (tmp_path / "drivers" / "empty" / "driver.py").write_text("")
    (tmp_path / "clients.toml").write_text(FILE)
    monkeypatch.setenv("WIRESPEED_LAB_TOOLS", str(tmp_path / "tools"))
    monkeypatch.setenv("WIRESPEED_LAB_ENVIRONMENTS", str(tmp_path / "python"))
    monkeypatch.setattr(places, "DRIVERS", tmp_path / "drivers")
    known = read(tmp_path / "clients.toml")
    for module in (making, command):
        monkeypatch.setattr(module, "registry", lambda: known)
    environments.python.cache_clear()
    environments.packages.cache_clear()
    yield tmp_path / "tools"
    environments.python.cache_clear()
    environments.packages.cache_clear()


def test_each_is_made_or_says_why_not_and_the_rest_goes_on(clients):
    told = []
    outcomes = {outcome.id: outcome for outcome in setup(tell=told.append)}
    assert [outcome.id for outcome in told] == list(outcomes)
    assert outcomes["good"].installed
    assert outcomes["good"].made
    assert outcomes["python"].installed
    assert "ended with 3: the reason" in outcomes["bad"].reason
    assert outcomes["worse"].reason == outcomes["bad"].reason
    assert "no no-such-program-anywhere" in outcomes["needy"].reason
    assert outcomes["gone"].reason == "the registry says no"


def test_a_build_that_clients_share_is_tried_once(clients):
    setup(["bad", "worse"])
    assert (clients / "log").read_text() == "tried\n"


def test_what_is_there_already_was_not_made(clients):
    assert [outcome.made for outcome in setup(["good"])] == [True]
    assert [outcome.made for outcome in setup(["good"])] == [False]


def test_an_environment_is_made_once(clients):
    assert [outcome.made for outcome in setup(["python"])] == [True]
    assert [outcome.made for outcome in setup(["python"])] == [False]
    client = making.registry()["python"]
    assert client.missing() is None
    assert client.packages() == {}
    assert client.environment == {"PYTHONDONTWRITEBYTECODE": "1"}


def test_a_client_that_nobody_has_is_refused(clients):
    with pytest.raises(KeyError):
        setup(["absent"])


def test_the_command_says_what_came_of_each(clients, capsys):
    assert command.main(["good", "gone"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said == [
        "good: installed",
        "gone: missing: the registry says no",
        "1 of 2 clients are installed",
    ]


def test_all_of_them_may_leave_some_out(clients, capsys):
    assert command.main([]) == 0
    assert "2 of 6 clients are installed" in capsys.readouterr().out


def test_a_look_makes_nothing(clients, capsys):
    assert command.main(["--check", "good"]) == 1
    assert "good: missing" in capsys.readouterr().out
    assert not (clients / "good").exists()


def test_an_unknown_id_is_named(clients, capsys):
    with pytest.raises(SystemExit):
        command.main(["absent"])
    assert "no client absent; there are good, bad" in capsys.readouterr().err


def test_the_real_registry_is_what_is_used_elsewhere():
    assert "boto3-get" in registry()
