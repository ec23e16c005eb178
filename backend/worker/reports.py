"""What libraries log while a command is carried out: some report the cause there, and only then raise.

transformers raises "look at the CONVERSION entries of the above report" after logging that report, for example.
"""

import logging
import re
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from tokendyno.backend.redact import redact

MOST_RECORDS = 8
MOST_CHARACTERS = 1_200

_NOISE = re.compile(r"\s|Traceback |[-+|=\s]*$|Notes:|Key +\| Status")
"""Lines of a report that name no cause: indented ones (frames of a traceback), rules, headings."""


class Reports(logging.Handler):
    """Keeps the latest warnings and errors of all loggers while it is listening."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._texts: deque[str] = deque(maxlen=MOST_RECORDS)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Forget what was logged before, and listen: to the root, and to loggers that do not pass their records on."""
        self._texts.clear()
        known = list(logging.root.manager.loggerDict.values())  # other threads add to it
        named = [logger for logger in known if isinstance(logger, logging.Logger)]
        loggers = [logging.root, *(logger for logger in named if not logger.propagate)]
        for logger in loggers:
            logger.addHandler(self)
        try:
            yield
        finally:
            for logger in loggers:
                logger.removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Called by logging."""
        text = _essence(record.getMessage())
        if text and text not in self._texts:
            self._texts.append(text)

    def said(self) -> str:
        """What was logged, newest last, in one line; "" if nothing was."""
        text = " / ".join(self._texts)
        if len(text) <= MOST_CHARACTERS:
            return text
        half = MOST_CHARACTERS // 2  # a report begins with what failed, and ends with why
        return f"{text[:half]} [...] {text[-half:]}"


def _essence(text: str) -> str:
    """The lines of a log record that say what failed and why, without secrets."""
    lines = [line for line in redact(text).splitlines() if line.strip() and not _NOISE.match(line)]
    return "; ".join(" ".join(line.strip(" |").split()) for line in dict.fromkeys(lines))
