"""The drivers in Java keep the protocol."""

import json
import shutil
import subprocess

import pytest
from wirespeed_lab import places
from wirespeed_lab.driving.conformance import conform

NAMES = ["java-crt", "java-tm-100", "java-tm-250", "java-bytes", "java-direct"]


@pytest.fixture(scope="module")
def jar():
    if not shutil.which("java"):
        pytest.skip("there is no java")
    path = places.REPOSITORY / ".tools" / "lab" / "java" / "drivers.jar"
    if not path.is_file():
        pytest.skip("drivers.jar is not built: mvn package in lab/drivers/java")
    return path


#: Each case is a JVM or more, and all of them a minute: by hand the conformance test has the rest.
CASES = ("get memory", "put", "failing items", "bad plans", "SIGTERM")


# The transfer manager's two concurrencies are one driver.
@pytest.mark.parametrize("name", ["java-crt", "java-tm-100", "java-bytes", "java-direct"])
def test_a_driver_in_java_conforms(jar, name):
    report = conform(["java", "-jar", str(jar), name], only=CASES)
    assert report.failures == []
    assert report.passed == ["describe", *CASES]


def test_the_jar_names_the_versions_that_it_was_built_with(jar):
    command = ["java", "-jar", jar, "java-tm-250", "describe"]
    said = json.loads(subprocess.check_output(command, timeout=60))
    pinned = (places.DRIVERS / "java" / "pom.xml").read_text()
    assert said["name"] == "java-tm-250"
    assert f"<version>{said['version']}</version>" in pinned
    assert f"<version>{said['components']['aws-crt']}</version>" in pinned


def test_an_unknown_client_is_refused_by_name(jar):
    command = ["java", "-jar", jar, "java-none", "describe"]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert refused.returncode == 2
    assert all(name in refused.stderr for name in NAMES)
