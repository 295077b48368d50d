"""torch is an optional extra: wirespeed works without, and wirespeed.torch says what to install."""

from __future__ import annotations

import subprocess
import sys
import textwrap


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_without_torch_the_import_says_what_to_install() -> None:
    said = run("""
        import sys
        sys.modules["torch"] = None
        import wirespeed
        try:
            import wirespeed.torch
        except ImportError as error:
            print(error)
    """)
    assert "wirespeed[torch]" in said
    assert "not installed" in said


def test_wirespeed_alone_does_not_import_torch() -> None:
    assert run("import sys, wirespeed; print('torch' in sys.modules)").strip() == "False"
