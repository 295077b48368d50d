"""User data: the timer comes first, and the setup script arrives as it was written."""

import subprocess

import pytest
from wirespeed_lab.cloud import userdata

TOKEN = "ab" * 32


def test_the_timer_is_set_before_anything_else():
    lines = userdata.script(45, TOKEN, 7171, "exit 1").splitlines()
    assert lines[0] == "#!/bin/bash"
    assert lines[1].startswith("shutdown -h +45 ")


def play(tmp_path, setup):
    """Runs the user data with a stand-in for each command that a machine would be moved by; what
    was called, in order."""
    text = userdata.script(45, TOKEN, 7171, setup)
    text = text.replace("/run/", f"{tmp_path}/")
    for name in ("shutdown", "poweroff", "wirespeed-lab"):
        stand_in = tmp_path / name
        stand_in.write_text(f'#!/bin/bash\necho {name} "$@" >> {tmp_path}/calls\n')
        stand_in.chmod(0o755)
    (tmp_path / "script").write_text(text)
    subprocess.run(
        ["bash", str(tmp_path / "script")],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path)},
        check=False,
        capture_output=True,
        timeout=30,
    )
    return (tmp_path / "calls").read_text().splitlines()


def test_the_agent_is_started_after_the_setup_and_the_machine_ends_after_it(tmp_path):
    setup = "cat > \"$HOME/proof\" <<'X'\n$(a) 'b' \\ \"c\"\nEND-OF-SETUP\nX\nexport SEEN=1\n"
    calls = play(tmp_path, setup)
    assert calls[0].startswith("shutdown -h +45")
    assert calls[1].startswith("wirespeed-lab agent --listen 0.0.0.0:7171 --token-file")
    assert calls[2:] == ["shutdown -h now"]
    assert (tmp_path / "proof").read_text() == "$(a) 'b' \\ \"c\"\nEND-OF-SETUP\n"
    token = tmp_path / "wirespeed-lab.token"
    assert token.read_text() == TOKEN + "\n"
    assert token.stat().st_mode & 0o077 == 0


def test_a_setup_that_fails_ends_the_machine_at_once(tmp_path):
    calls = play(tmp_path, "false\n")
    assert [call.split(" ")[2] for call in calls] == ["+45", "now"]


def test_a_setup_that_does_not_fit_or_holds_what_can_not_be_is_refused():
    with pytest.raises(userdata.TooLong, match="let it fetch"):
        userdata.script(45, TOKEN, 7171, "#" * 16384)
    with pytest.raises(ValueError, match="NUL"):
        userdata.script(45, TOKEN, 7171, "a\0b")
