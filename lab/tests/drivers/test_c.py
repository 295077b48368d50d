"""The driver over aws-c-s3 keeps the protocol."""

import json
import subprocess

import pytest
from wirespeed_lab import places
from wirespeed_lab.driving.conformance import conform


@pytest.fixture
def product():
    path = places.REPOSITORY / ".tools" / "lab" / "c" / "crt-c"
    if not path.is_file():
        pytest.skip("crt-c is not built: lab/drivers/c/build.sh")
    return path


def test_the_driver_in_c_conforms(product):
    assert conform([str(product)]).failures == []


def test_the_driver_in_c_names_the_source_that_it_was_built_from(product):
    said = json.loads(subprocess.check_output([product, "describe"], timeout=20))
    script = (places.DRIVERS / "c" / "build.sh").read_text()
    assert f"awscrt={said['components']['awscrt (source distribution)']}\n" in script
    assert said["name"] == "crt-c"
