"""A release says what it is made of, whole, and says what stands in its way."""

import importlib.util
import re
import tomllib
from importlib.metadata import distribution

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.paths import ROOT


@pytest.fixture(scope="module")
def release():
    spec = importlib.util.spec_from_file_location("release", ROOT / "scripts/release.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_bill_of_materials_names_every_library_with_its_licence(release, tmp_path):
    wheel = tmp_path / "evenedit.whl"
    wheel.write_bytes(b"a wheel")
    bill = release.bill_of_materials("1.2.3", wheel)
    listed = {part["name"]: part for part in bill["components"]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [Requirement(line) for line in project["dependencies"]]
    assert {canonicalize_name(one.name) for one in wanted} <= set(listed)
    assert "pydantic-core" in listed and "typing-extensions" in listed, "what libraries ask for in turn"
    assert all(part["version"] == distribution(name).version for name, part in listed.items())
    assert all(part["licenses"][0]["license"]["name"] for part in listed.values())


def test_a_library_that_is_not_installed_is_an_error_and_no_gap(release):
    with pytest.raises(SystemExit, match="not installed here"):
        release.needed([Requirement("evenedit-has-no-such-library>=1")])


def test_what_stands_in_the_way_is_said(release):
    told = release.problems("99.0")
    assert "'99.0' is no version; write 1.2.3" in told
    assert any(re.search("CHANGELOG.md has no section", line) for line in told)
