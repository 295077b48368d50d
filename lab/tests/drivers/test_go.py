"""The drivers in Go keep the protocol."""

import json
import subprocess

import pytest
from wirespeed_lab import places
from wirespeed_lab.driving.conformance import conform

NAMES = ["go-manager", "go-transfermanager", "minio-go"]


@pytest.fixture(params=NAMES)
def product(request):
    path = places.REPOSITORY / ".tools" / "lab" / "go" / request.param
    if not path.is_file():
        pytest.skip(f"{path.name} is not built: go build ./cmd/{path.name} in lab/drivers/go")
    return path


def test_a_driver_in_go_conforms(product):
    assert conform([str(product)]).failures == []


def test_a_driver_in_go_names_the_versions_that_it_was_built_with(product):
    said = json.loads(subprocess.check_output([product, "describe"], timeout=20))
    pinned = (places.DRIVERS / "go" / "go.mod").read_text()
    assert said["name"] == product.name
    assert f" v{said['version']}\n" in pinned
    modules = {module: of for module, of in said["components"].items() if module != "go"}
    assert all(f"{module} v{version}\n" in pinned for module, version in modules.items())
