"""One strict TOML reader: a wrong file is an InputError that names it, a right one is a struct."""

from pathlib import Path

import msgspec
import pytest

from tokendyno.backend.errors import InputError
from tokendyno.backend.files.toml import MAX_BYTES, read_toml, refuse_duplicates


class Wheel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    size: int
    spokes: int = 32


class Cart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    wheel: list[Wheel] = []


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b'name = "x"\nweel = 3', "unknown field `weel`"),
        (b'name = "x"\n[[wheel]]\nsize = 1\nspoke = 2', "unknown field `spoke` - at `$.wheel[0]`"),
        (b'name = "x"\n[[wheel]]\nsize = "1"', "Expected `int`, got `str` - at `$.wheel[0].size`"),
        (b'name = "x"\nwheel = [3]', "Expected `object`, got `int`"),
        (b"wheel = []", "missing required field `name`"),
        (b"name = ", "it is not valid TOML: Invalid value"),
        (b"name = '\xff'", "it is not UTF-8 text"),
        (None, "it cannot be read (No such file or directory)"),
        (b"#" * (MAX_BYTES + 1), "it has more than 1,048,576 bytes"),
    ],
)
def test_a_wrong_file_is_refused_by_name(tmp_path: Path, data: bytes | None, says: str) -> None:
    path = tmp_path / "cart.toml"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(InputError) as refused:
        read_toml(path, Cart)
    assert says in str(refused.value)
    assert str(refused.value).startswith(f"{path} cannot be used: ") and "Correct or remove it" in str(refused.value)


def test_a_right_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "cart.toml"
    path.write_text('name = "x"\n[[wheel]]\nsize = 1\n')
    assert read_toml(path, Cart) == Cart("x", [Wheel(1)])


def test_a_name_may_occur_once(tmp_path: Path) -> None:
    refuse_duplicates(tmp_path, ["a", "b"])
    with pytest.raises(InputError, match="'a' occurs twice"):
        refuse_duplicates(tmp_path, ["a", "b", "a"])


def test_a_file_nested_without_end_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "deep.toml"
    path.write_text("a = " + "[" * 20_000)
    with pytest.raises(InputError, match="nested too deeply"):
        read_toml(path, Cart)
