"""The drivers in Go keep the protocol."""

import json
import subprocess

import products
import pytest

HOW = "go build -o ../../../.tools/lab/go/ID ./cmd/ID in lab/drivers/go"
NAMES = ["go-manager", "go-transfermanager", "minio-go"]


@pytest.mark.parametrize("name", NAMES)
def test_a_driver_in_go_conforms(name):
    products.conforms(products.built(f"go/{name}", HOW))


@pytest.mark.parametrize("name", NAMES)
def test_a_driver_in_go_names_the_versions_that_it_was_built_with(name):
    product = products.built(f"go/{name}", HOW)
    said = json.loads(subprocess.check_output([product, "describe"], timeout=20))
    pinned = (products.places.DRIVERS / "go" / "go.mod").read_text()
    assert said["name"] == name
    assert f" v{said['version']}\n" in pinned
    modules = {module: of for module, of in said["components"].items() if module != "go"}
    assert all(f"{module} v{version}\n" in pinned for module, version in modules.items())
