"""What a page asked for, said and showed: printed where a test fails, since nobody can look at that page later."""

import time
from typing import Any

TEXT = 4_000
"""Characters of the page's text that are printed."""

BODY = 200
"""Characters of what a request sent: which event it was."""


class Seen:
    """Follows one page from its start; `clear` for the next test."""

    def __init__(self, page: Any) -> None:
        self._page = page
        self._unanswered: dict[Any, str] = {}
        self._said: list[str] = []
        page.on("request", self._note_request)
        page.on("requestfinished", lambda request: self._unanswered.pop(request, None))
        page.on("requestfailed", self._note_failure)
        page.on("console", self._note_console)

    def clear(self) -> None:
        self._unanswered.clear()
        self._said.clear()

    def report(self) -> str:
        """Address, requests without an answer, failures in their order, and the start of the text."""
        text = self._page.evaluate("document.body.innerText")
        lines = [
            f"page {self._page.url} at {time.strftime('%H:%M:%S')}",
            *(f"no answer yet: {asked}" for asked in self._unanswered.values()),
            *self._said,
        ]
        return "\n".join([*lines, text[:TEXT]])

    def _note_request(self, request: Any) -> None:
        at = time.strftime("%H:%M:%S")
        self._unanswered[request] = f"{request.method} {request.url} of {at} {(request.post_data or '')[:BODY]}"

    def _note_failure(self, request: Any) -> None:
        self._unanswered.pop(request, None)
        self._said.append(f"failed: {request.method} {request.url}: {request.failure}")

    def _note_console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self._said.append(f"console {message.type}: {message.text}")
