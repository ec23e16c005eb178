"""Runs as files: saved as a recording, a report, a picture, Markdown, CSV or JSON, and taken in from a recording where
the mode allows it.

Plain HTTP behind the gate, since Gradio would keep every file on the disk. Like watching, saving takes the id of a run.
"""

import asyncio
import re

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.hosting.visitor import Visitor
from tokendyno.backend.recordings.format import pack, unpack
from tokendyno.backend.recordings.recorded_runs import import_records, shipped_records
from tokendyno.backend.runs.run import Run
from tokendyno.backend.views.document import document_of
from tokendyno.backend.views.share import code_file, command_of, markdown, series_csv, shared
from tokendyno.ui.picture import picture
from tokendyno.ui.report.page import report
from tokendyno.ui.report.scripts import scripts_of

IMPORT = "/import"
SAVED = re.compile(r"/files/([A-Za-z0-9_-]{1,64})\.(dyno|html|csv|json|png|md|sh|py)")
KINDS = {
    "dyno": "application/octet-stream",
    "html": "text/html",
    "csv": "text/csv",
    "json": "application/json",
    "png": "image/png",
    "md": "text/markdown",
    "sh": "text/plain",
    "py": "text/plain",
}

AT_A_TIME = 2
"""Files that are written or read at the same time, each with a few hundred megabytes of memory at most."""

NO_FILE = "There is no such run here, or it is not kept."
NOT_HERE = "Files are not taken in here. Run tokendyno on a machine of your own: tokendyno import FILE."


class Files:
    """Answers what the gate lets through."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._turns = asyncio.Semaphore(AT_A_TIME)

    def serves(self, method: str, path: str) -> bool:
        """Whether a request is for a file."""
        return path == IMPORT if method == "POST" else method == "GET" and bool(SAVED.fullmatch(path))

    def previews(self, path: str) -> bool:
        """Whether this is a picture, which those who preview a link ask for without a cookie."""
        return path.startswith("/files/") and path.endswith(".png")

    async def answer(self, request: Request, visitor: Visitor) -> Response:
        """The answer to such a request, or HTTPException. A turn lasts while a file is made, not while it travels."""
        try:
            if request.method == "POST":
                if not self._bench.limits.imports:
                    raise HTTPException(403, NOT_HERE)
                body = await request.body()
                async with self._turns:
                    return JSONResponse({"run": await asyncio.to_thread(self._import, body, visitor)})
            match = SAVED.fullmatch(request.scope["path"])
            assert match is not None
            run_id, kind = match.groups()
            async with self._turns:
                data = await asyncio.to_thread(self._export, run_id, kind)
        except InputError as error:
            raise HTTPException(400, str(error)) from error
        where = "inline" if kind == "png" else "attachment"  # else it could be a page of this server
        disposition = f'{where}; filename="tokendyno-{run_id}.{kind}"'
        return Response(data, headers={"content-disposition": disposition}, media_type=KINDS[kind])

    def _import(self, data: bytes, visitor: Visitor) -> str:
        run_id = import_records(unpack(data), self._bench.store, visitor.owner)
        if trouble := self._bench.store.trouble:
            raise InputError(trouble)
        return run_id

    def _export(self, run_id: str, kind: str) -> bytes:
        run = self._bench.runs.get(run_id)
        if run is None:
            raise HTTPException(404, NO_FILE)
        if not run.ended:
            raise InputError("This run has not ended. Wait for its end, or stop it.")
        if kind == "dyno":
            records = self._bench.store.read(run_id) or shipped_records(run_id)
            if not records:
                raise HTTPException(404, NO_FILE)
            return pack(records)
        if kind == "json":
            return msgspec.json.encode(document_of(run, self._bench.runs.reading))
        if kind == "png":
            return picture(shared(run, self._bench.runs))
        if kind == "py":
            if not (code := code_file(run.snapshot())):
                raise HTTPException(404, "No code was generated in this run.")
            return code.encode()
        if kind == "md":
            return markdown(shared(run, self._bench.runs)).encode()
        return self._of_one_prompt(run, kind)

    def _of_one_prompt(self, run: Run, kind: str) -> bytes:
        if run.request.traffic is not None or run.request.quality is not None:
            raise InputError("This file is of one prompt; the run is of many requests or given texts.")
        if kind == "html":
            return report(run, scripts_of(run, self._bench), self._bench.runs).encode()
        return f"{command_of(run.request)}\n".encode() if kind == "sh" else series_csv(run).encode()
