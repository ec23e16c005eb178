"""The index of weight files: as large as those of the largest models, and read without keeping what is not wanted."""

from pathlib import Path

import pytest

from tokendyno.backend.errors import InputError
from tokendyno.backend.models.files import folder
from tokendyno.backend.models.files.folder import named_files


def test_an_index_of_the_largest_models_is_read(tmp_path: Path) -> None:
    """DeepSeek-V3's, of 8.9 MB, was refused as larger than any model's."""
    shards = [f"model-{n:05d}-of-000163.safetensors" for n in range(163)]
    weight = '    "model.layers.%d.mlp.experts.%d.down_proj.weight_scale_inv": "%s"'
    weights = ",\n".join(weight % (n % 61, n, shards[n % 163]) for n in range(91_991))
    path = tmp_path / "index.json"
    path.write_text('{"metadata": {"total_size": 688586727753},\n  "weight_map": {\n' + weights + "\n  }\n}\n")
    assert path.stat().st_size > 9 << 20
    assert named_files(path) == shards


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('{"weight_map": {"a": "x.safetensors"}}', ["x"]),
        (
            '{"weight_map":{"a\\"}":"y.safetensors" ,\n"b":"x.safetensors"\t} , "metadata":{}}',
            ["x", "y"],
        ),
        ('{"weight_map":{"a":"\\u0078.safetensors","b":"x.safetensors"}}', ["x"]),
    ],
)
def test_names_are_read_as_json(text: str, names: list[str], tmp_path: Path) -> None:
    (tmp_path / "index.json").write_text(text)
    assert [name.removesuffix(".safetensors") for name in named_files(tmp_path / "index.json")] == names


def test_an_index_at_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "index.json"
    path.write_text('{"weight_map":{"a":"a.safetensors","b":"b.safetensors","c":"a.safetensors"}}')
    monkeypatch.setattr(folder, "MAX_INDEX_BYTES", path.stat().st_size)
    assert named_files(path) == ["a.safetensors", "b.safetensors"]
    monkeypatch.setattr(folder, "MAX_INDEX_BYTES", path.stat().st_size - 1)
    with pytest.raises(InputError, match="too large"):
        named_files(path)
