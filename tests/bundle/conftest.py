"""A sealed study and its bundle, made once for the tests that only read them."""

from pathlib import Path

import pytest

from bundles import KEY_PEM, SEALED, sealed_study
from evenedit.bundle.making import Bundled, make_bundle
from evenedit.study.study import Study


@pytest.fixture(scope="session")
def study(tmp_path_factory) -> Study:
    return sealed_study(tmp_path_factory.mktemp("sealed") / "study", **SEALED)


@pytest.fixture(scope="session")
def made(study, tmp_path_factory) -> Bundled:
    folder = tmp_path_factory.mktemp("bundle")
    (folder / "key.pem").write_text(KEY_PEM)
    return make_bundle(study, folder / "audit.zip", pictures="thumbnails", key=folder / "key.pem")


@pytest.fixture(scope="session")
def audit(made) -> Path:
    return made.bundle.path
