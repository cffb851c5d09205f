"""What a plug-in imports from `evenedit` itself, and what still works under a former name."""

import subprocess
import sys
import warnings

import pytest

import evenedit

PLUGIN_NAMES = ["Editor", "Judge", "Refusal", "Reply", "Status", "Failed", "Failure", "Case", "Question"]


def test_every_public_name_can_be_imported():
    for name in evenedit.__all__:
        assert getattr(evenedit, name) is not None


@pytest.mark.parametrize("name", PLUGIN_NAMES)
def test_a_former_name_warns_and_is_the_same_class(name):
    from importlib import import_module

    records = import_module("evenedit.records")
    with pytest.warns(DeprecationWarning, match=f"from evenedit import {name}"):
        old = getattr(records, name)
    assert old is getattr(evenedit, name)


def test_a_plug_in_of_the_former_release_still_imports():
    code = "from evenedit.records import Failed, Failure, Refusal, UserError; print(Refusal('no').reason)"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "no\n", done.stderr


def test_an_unknown_name_is_no_attribute():
    with warnings.catch_warnings(), pytest.raises(AttributeError, match="no attribute 'nothing'"):
        evenedit.nothing  # noqa: B018


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, evenedit; print([m for m in ('numpy', 'pandas', 'PIL', 'sqlalchemy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n", done.stderr
