"""Progress: a bar on a terminal or in a notebook, plain lines elsewhere."""

import sys
from types import ModuleType, SimpleNamespace

from evenedit.core.progress import Progress


def bar_with(monkeypatch, **modules: object):
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    with Progress("rate", 2) as progress:
        progress.advance(2)
        return progress._bar


def test_an_imported_ipykernel_is_no_notebook(monkeypatch, capsys):
    assert bar_with(monkeypatch, ipykernel=ModuleType("ipykernel")) is None
    assert "rate: 2/2" in capsys.readouterr().err


def test_a_kernel_is_a_notebook(monkeypatch):
    shell = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()))
    assert bar_with(monkeypatch, IPython=shell) is not None
    assert bar_with(monkeypatch, IPython=SimpleNamespace(get_ipython=lambda: None)) is None
