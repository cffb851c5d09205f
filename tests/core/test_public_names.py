"""What a plug-in imports from `evenedit` itself."""

import subprocess
import sys

import pytest

import evenedit


def test_every_public_name_can_be_imported():
    for name in evenedit.__all__:
        assert getattr(evenedit, name) is not None


def test_an_unknown_name_is_no_attribute():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        evenedit.nothing  # noqa: B018


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, evenedit; print([m for m in ('numpy', 'pandas', 'PIL', 'sqlalchemy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n", done.stderr
