import sys

import pytest
from wirespeed_lab import environments, places


@pytest.fixture
def drivers(tmp_path, monkeypatch):
    """A folder of drivers with one requirements file each, and a place for environments."""
    folder = tmp_path / "drivers"
    for name, text in {"empty": "# nothing\n", "wants": "Some_Thing==1.2.3\n"}.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "requirements.txt").write_text(text)
    monkeypatch.setattr(places, "DRIVERS", folder)
    monkeypatch.setenv("WIRESPEED_LAB_ENVIRONMENTS", str(tmp_path / "made"))
    environments.python.cache_clear()
    environments.packages.cache_clear()
    yield tmp_path / "made"
    environments.python.cache_clear()
    environments.packages.cache_clear()


def test_every_driver_names_exact_versions():
    assert environments.OURS in environments.names()
    for name in environments.names():
        file = places.DRIVERS / name / "requirements.txt"
        assert environments.pins(file.read_text()), name


@pytest.mark.parametrize("line", ["numpy", "numpy>=2", "numpy==2.*", "numpy==", "-r other.txt"])
def test_a_line_without_an_exact_version_is_refused(line):
    with pytest.raises(ValueError, match="no exact version"):
        environments.pins(f"# first\n{line}\n")


def test_names_are_compared_as_package_indexes_do():
    assert environments.pins("Some_Thing==1.2.3  # why\n") == {"some-thing": "1.2.3"}


def test_an_environment_is_made_once_and_again_when_its_requirements_change(drivers):
    assert environments.names() == ["empty", "wants"]
    assert environments.make("empty") is True
    assert environments.make("empty") is False
    assert environments.python("empty") == drivers / "empty" / "bin" / "python"
    assert environments.packages("empty") == {}
    (places.DRIVERS / "empty" / "requirements.txt").write_text("# other\n")
    assert environments.make("empty") is True


def test_an_environment_that_is_not_there_is_refused_with_what_to_do(drivers):
    with pytest.raises(places.MissingProgram, match="make it with"):
        environments.python("empty")


def test_an_environment_with_other_packages_is_refused_by_name(drivers):
    assert environments.make("empty")
    (drivers / "empty").rename(drivers / "wants")
    with pytest.raises(places.MissingProgram, match=r"some-thing is missing instead of 1\.2\.3"):
        environments.python("wants")
    assert environments.unexpected({"a": "1", "b": "2"}, {"b": "3", "c": "4"}) == [
        "a is missing instead of 1",
        "b 3 instead of 2",
        "c 4 is not pinned",
    ]


def test_our_own_environment_needs_a_wheel(drivers):
    (places.DRIVERS / environments.OURS).mkdir()
    (places.DRIVERS / environments.OURS / "requirements.txt").write_text("# nothing\n")
    with pytest.raises(environments.CannotMake, match="--wheel"):
        environments.make(environments.OURS)


def test_what_pip_says_is_told(drivers):
    with pytest.raises(environments.CannotMake, match="ended with 3: no such thing"):
        environments._run(sys.executable, "-c", "import sys; print('no such thing'); sys.exit(3)")


def test_a_driver_that_nobody_wrote_is_named(drivers, capsys):
    with pytest.raises(SystemExit):
        environments.main(["absent"])
    assert "empty, wants" in capsys.readouterr().err
