"""What EvenEdit says while it works: the logger `evenedit`, shown on standard error beside progress bars.

Silence it as any logger: `logging.getLogger("evenedit").setLevel(logging.WARNING)`.
"""

from __future__ import annotations

import logging
import sys

log = logging.getLogger("evenedit")


class _StandardError(logging.Handler):
    """Writes each message as one line, above a progress bar where there is one."""

    def emit(self, record: logging.LogRecord) -> None:
        from tqdm import tqdm

        try:
            tqdm.write(self.format(record), file=sys.stderr)
            sys.stderr.flush()
        except Exception:
            self.handleError(record)


if not log.handlers:  # an application that has set up its own handler keeps it
    log.addHandler(_StandardError())
    if log.level == logging.NOTSET:
        log.setLevel(logging.INFO)
    log.propagate = False
