"""The driver over aws-c-s3 keeps the protocol."""

import json
import subprocess

import products

HOW = "lab/drivers/c/build.sh"


def test_the_driver_in_c_conforms():
    products.conforms(products.built("c/crt-c", HOW))


def test_the_driver_in_c_names_the_source_that_it_was_built_from():
    product = products.built("c/crt-c", HOW)
    said = json.loads(subprocess.check_output([product, "describe"], timeout=20))
    script = (products.places.DRIVERS / "c" / "build.sh").read_text()
    assert f"awscrt={said['components']['awscrt (source distribution)']}\n" in script
    assert said["name"] == "crt-c"
