"""The server that drivers are tried on, as it was built for tests or for figures."""

import pytest
from wirespeed_lab import places


@pytest.fixture(scope="session", autouse=True)
def built_server():
    built = [places.target() / kind / "wirespeed-origin" for kind in ("debug", "release")]
    found = [path for path in built if path.is_file()]
    with pytest.MonkeyPatch.context() as patch:
        if found:
            patch.setenv("WIRESPEED_LAB_ORIGIN", str(found[0]))
        yield
