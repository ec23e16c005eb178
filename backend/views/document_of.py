"""The JSON document of a run of any kind, from what was recorded of it."""

import msgspec

from tokendyno.backend.runs.gate import FindReading, gate_of
from tokendyno.backend.runs.run import Run
from tokendyno.backend.views.batch_document import batch_document
from tokendyno.backend.views.document import document, recorded_series
from tokendyno.backend.views.gate import gate_document
from tokendyno.backend.views.quality_document import quality_document


def document_of(run: Run, find: FindReading) -> msgspec.Struct:
    """The document of its kind. It needs neither the model nor the machine that the run had. `find`: a reading of texts
    by the same arms."""
    if run.request.quality is not None:
        return quality_document(run)
    if run.request.traffic is not None:
        return batch_document(run)
    gate = gate_of(run.snapshot(), find) if run.ended else None
    return document(run, recorded_series(run), gate_document(gate))
