"""The documents' samples that need a GPU do what presets/samples.toml says."""

from collections.abc import Iterator

import pytest

from tests.support.samples import as_it_says, sample_scripts
from tests.support.scripts import Scripts
from tools.samples import Sample, samples

pytestmark = pytest.mark.gpu
ON_A_GPU = [one for one in samples() if one.needs == "cuda"]


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scripts]:
    with sample_scripts(tmp_path_factory.mktemp("samples")) as found:
        yield found


@pytest.mark.timeout(240)
@pytest.mark.parametrize("sample", ON_A_GPU, ids=[one.name for one in ON_A_GPU])
def test_a_sample_does_on_a_gpu_what_the_file_says(sample: Sample, there: Scripts) -> None:
    as_it_says(there, sample)
