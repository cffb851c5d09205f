"""Uses the installed package from Python, outside any checkout. Its argument is the folder of a study that has run."""

import sys
from pathlib import Path

import evenedit
from evenedit import Study

for name in evenedit.__all__:
    assert getattr(evenedit, name) is not None, name

assert "site-packages" in Path(evenedit.__file__).parts, evenedit.__file__
assert Study.load(Path(sys.argv[1])).store.edits(), "the study has edits"
print("ok")
