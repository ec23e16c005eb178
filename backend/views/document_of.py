"""The JSON document of a run of any kind, from what was recorded of it."""

import msgspec

from backend.runs.run import Run
from backend.views.batch_document import batch_document
from backend.views.document import document, recorded_series
from backend.views.quality_document import quality_document


def document_of(run: Run) -> msgspec.Struct:
    """The document of its kind. It needs neither the model nor the machine that the run had."""
    if run.request.quality is not None:
        return quality_document(run)
    return batch_document(run) if run.request.traffic is not None else document(run, recorded_series(run))
