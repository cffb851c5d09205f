"""Measure what users wait for, and print it beside a plain way of doing the same: `python -m bench [NAME ...]`."""

import sys
import tempfile
from importlib import import_module
from pathlib import Path

BENCHES = (
    "commits",
    "editing",
    "gallery",
    "gate",
    "growth",
    "instruments",
    "judges",
    "live",
    "portraits",
    "report",
    "statistics",
    "survey",
)
NAMED = ("coverage",)
"""What measures no time and runs only when named."""

unknown = [name for name in sys.argv[1:] if name not in BENCHES + NAMED]
if unknown:
    sys.exit(f"no benchmark is called {', '.join(unknown)}; there are: {', '.join(BENCHES + NAMED)}")
for name in sys.argv[1:] or BENCHES:
    print(f"-- {name}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        import_module(f"bench.{name}").run(Path(folder))
