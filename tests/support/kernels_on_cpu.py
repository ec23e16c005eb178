"""The bundled kernels on a CPU: their own source, as plain torch, each program of a launch after the other.

Triton's interpreter knows no Gluon. Here the modules of a package are loaded with stand-ins for triton
(`kernel_language`). That shows what a kernel computes, but not whether it compiles, nor races: what programs exchange
through memory is always there, unless it depends on their order, which can be reversed. What kernels do in assembly
(packed weights, caches in 8 bits) runs on a GPU alone, in tests/gpu.
"""

import ast
import importlib
import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar
from unittest import mock

import torch

from tests.support.kernel_language import PROGRAM, Pointer, copy_to_shared, language, multiplied
from tokendyno.backend.hardware import kernel_packages

FOLDER = kernel_packages.BUNDLED / "matvec/build/torch-cuda"
NAME = "tokendyno_kernels_on_cpu"


class Kernel:
    """A function of a kernel's source. `kernel[grid](...)` runs all programs, from the last to the first if
    `backwards`, adds its name to `launched`, and returns what has that name for a function of the driver; other kernels
    call it as it is. carveouts: the shared memory that was asked for each name, in percent"""

    backwards = False
    launched: ClassVar[list[str]] = []
    carveouts: ClassVar[dict[str, int]] = {}

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.names = function.__code__.co_varnames[: function.__code__.co_argcount]

    def __call__(self, *given: Any, **more: Any) -> Any:
        return self.function(*given, **more)

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., SimpleNamespace]:
        sizes = (*grid, 1, 1)[:3]

        def launch(*given: Any, **flags: Any) -> SimpleNamespace:
            """As Triton does, takes launch settings among the arguments, of which the kernel has no parameter."""
            named = dict(zip(self.names, given, strict=False)) | {k: v for k, v in flags.items() if k in self.names}
            self.launched.append(self.function.__name__)
            ids = list(itertools.product(*(range(size) for size in sizes)))
            for program in reversed(ids) if self.backwards else ids:
                PROGRAM[:] = [program, sizes]
                self.function(**{name: _pointer(value) for name, value in named.items()})
            return SimpleNamespace(function=self.function.__name__)

        return launch


def _pointer(value: Any) -> Any:
    """A tensor as the kernel gets it: all that is behind its address."""
    if not torch.is_tensor(value):
        return value
    begin = value.storage_offset()
    numbers = value.untyped_storage().nbytes() // value.element_size() - begin
    return Pointer(value.as_strided((numbers,), (1,), begin))


class _InTorch(ast.NodeTransformer):
    """What means something else in torch: `a += b` changes no tile that another name stands for, and a tile's bits
    can be taken as numbers of another format."""

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        found = ast.parse(ast.unparse(node.target), mode="eval").body
        return ast.copy_location(ast.Assign([node.target], ast.BinOp(found, node.op, node.value)), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "to" and node.keywords:  # bitcast=True
            node.func, node.keywords = ast.copy_location(ast.Attribute(node.func.value, "view", ast.Load()), node), []
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if ast.unparse(node).endswith(".type.layout"):
            return ast.copy_location(ast.Constant(None), node)
        if node.attr != "primitive_bitwidth":
            return node
        eight, size = ast.Constant(8), ast.Attribute(node.value, "itemsize", ast.Load())
        return ast.copy_location(ast.BinOp(eight, ast.Mult(), size), node)


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> Any:
        tree = _InTorch().visit(ast.parse(Path(self.path).read_text(encoding="utf-8")))
        return compile(ast.fix_missing_locations(tree), self.path, "exec")


class _Finder(MetaPathFinder):
    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        package, _, part = fullname.rpartition(".")
        file = FOLDER / f"{part}.py"
        if package != NAME or not file.exists():
            return None
        return spec_from_file_location(fullname, file, loader=_Loader(fullname, str(file)))


def _stand_ins() -> dict[str, ModuleType]:
    """Module name -> what stands for it while the kernels' modules are imported."""
    gluon, triton = "triton.experimental.gluon", "triton"
    contents: dict[str, dict[str, Any]] = {
        "triton": {
            "jit": Kernel, "cdiv": lambda one, two: -(-one // two), "__version__": "on a CPU",
            "next_power_of_2": lambda number: 1 << (number - 1).bit_length(),
        },
        f"{triton}.experimental": {},
        gluon: {"jit": Kernel},
        f"{gluon}.language.nvidia": {},
        f"{gluon}.language.nvidia.ampere": {
            "async_copy": SimpleNamespace(
                async_copy_global_to_shared=copy_to_shared, commit_group=lambda: None, wait_group=lambda pending: None
            ),
            "mma_v2": multiplied,
        },
        f"{triton}.language.extra": {},
        f"{triton}.language.extra.cuda": {"gdc_launch_dependents": lambda: None, "gdc_wait": lambda: None},
        f"{triton}.runtime": {},
        f"{triton}.runtime.cache": {"get_cache_manager": None},
    }  # fmt: skip
    made = {name: language(name) for name in (f"{triton}.language", f"{gluon}.language")}
    for name, names in contents.items():
        made[name] = ModuleType(name)
        vars(made[name]).update(names)
    vars(made[triton]).update(language=made[f"{triton}.language"], runtime=made[f"{triton}.runtime"])
    vars(made[f"{triton}.experimental"]).update(gluon=made[gluon])
    vars(made[gluon]).update(language=made[f"{gluon}.language"])
    return made


def _imported(parts: tuple[str, ...]) -> dict[str, ModuleType]:
    """Modules of the package by name. Nothing of them or of the stand-ins stays in `sys.modules`."""
    package, finder, made = ModuleType(NAME), _Finder(), _stand_ins()
    package.__path__ = [str(FOLDER)]
    before = {name: sys.modules.get(name) for name in made}
    sys.modules.update({NAME: package} | made)
    sys.meta_path.insert(0, finder)
    try:
        vars(importlib.import_module(f"{NAME}.carveout"))["_set"] = Kernel.carveouts.__setitem__
        return {part: importlib.import_module(f"{NAME}.{part}") for part in parts}
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name == NAME or name.startswith(f"{NAME}.")]:
            del sys.modules[name]
        for name, module in before.items():
            sys.modules.pop(name)
            if module is not None:
                sys.modules[name] = module


@contextmanager
def kernels_on_cpu(*parts: str, card: str = "NVIDIA H200") -> Iterator[Any]:
    """These modules of the package, loaded anew; while it lasts torch says that it has this card, and has one thread:
    several would wait for each other longer than they take for tiles."""
    cuda: dict[str, Any] = {
        "get_device_name": lambda *_: card,
        "get_device_capability": lambda *_: (9, 0),
        "is_current_stream_capturing": lambda: True,
    }
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with mock.patch.multiple(torch.cuda, **cuda):
            yield SimpleNamespace(**_imported(parts))
    finally:
        torch.set_num_threads(threads)
