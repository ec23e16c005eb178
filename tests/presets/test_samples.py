"""What this version of transformers does with the calls of the documents' samples, as printed, and that the lines which
we give instead work."""

from collections.abc import Iterator

import pytest

from tests.support.samples import as_it_says, sample_scripts
from tests.support.scripts import Scripts
from tokendyno.backend.arms.parse import parse_arm
from tokendyno.backend.claims.declared import DOCUMENTS
from tools.samples import Sample, samples


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scripts]:
    with sample_scripts(tmp_path_factory.mktemp("samples")) as found:
        yield found


@pytest.mark.full
@pytest.mark.timeout(240)
@pytest.mark.xdist_group("samples")
@pytest.mark.parametrize(
    "sample",
    [one for one in samples() if one.needs != "cuda" and (one.error or one.needs != "hub")],
    ids=lambda one: one.name,
)
def test_a_sample_does_here_what_the_file_says(sample: Sample, here: Scripts) -> None:
    as_it_says(here, sample)


def test_samples_name_documents_and_arms() -> None:
    for one in samples():
        assert one.document in DOCUMENTS
        parse_arm("pocket", one.arm)
