"""What a result says about where it comes from can be said of every installation."""

import re
import tomllib

from evenedit.core.provenance import PACKAGES, provenance
from tests.support.paths import ROOT


def test_every_package_that_is_named_is_installed_with_the_base():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    base = {re.split(r"[^A-Za-z0-9_-]", line)[0].lower() for line in project["dependencies"]}
    assert set(PACKAGES) <= base
    assert set(provenance()["packages"]) == set(PACKAGES)


def test_a_command_line_that_the_locale_cannot_read_can_still_be_written(monkeypatch):
    monkeypatch.setattr("sys.argv", ["evenedit", "rescore", "th\udcc3\udcabirs.zip"])
    told = provenance()["command"]
    assert told.encode() and told.startswith("evenedit rescore th")
