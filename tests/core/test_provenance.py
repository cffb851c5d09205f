"""What a result says about where it comes from can be said of every installation."""

import re
import tomllib

from conftest import HERE
from evenedit.core.provenance import PACKAGES, provenance


def test_every_package_that_is_named_is_installed_with_the_base():
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]
    base = {re.split(r"[^A-Za-z0-9_-]", line)[0].lower() for line in project["dependencies"]}
    assert set(PACKAGES) <= base
    assert set(provenance()["packages"]) == set(PACKAGES)
