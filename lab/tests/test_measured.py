import sys

import pytest
from wirespeed_lab import measured


def test_a_command_is_measured_from_outside():
    work = "import time; x = bytearray(64 << 20); sum(range(3_000_000)); time.sleep(0.1); print(7)"
    result = measured.run((sys.executable, "-c", work), 0, {})
    assert result["output"] == "7\n"
    assert result["seconds"] > 0.1
    assert 0.01 < result["user_s"] + result["system_s"] < 10
    assert result["peak_rss_bytes"] > 64 << 20


def test_a_command_that_fails_is_quoted_with_what_it_said():
    failing = "import sys; print('no such thing', file=sys.stderr); sys.exit(3)"
    with pytest.raises(measured.CommandFailed, match="ended with 3: no such thing"):
        measured.run((sys.executable, "-c", failing), 0, {})
