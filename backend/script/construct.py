"""An object described once, by class and arguments: the worker builds it, a script prints the same call."""

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tokendyno.backend.script.source import call, quoted


@dataclass(frozen=True, slots=True)
class Name:
    """An argument that is only known where the object is built, such as a model's config."""

    name: str


Argument: TypeAlias = "bool | int | float | str | Name | Construct"


@dataclass(frozen=True, slots=True)
class Construct:
    """`class_name(*args, **keywords)`, a class of `module`, which is imported only to build it."""

    module: str
    class_name: str
    args: "tuple[Argument, ...]" = ()
    keywords: "Mapping[str, Argument]" = field(default_factory=dict)

    def build(self, **names: Any) -> Any:
        """The object, with `names` for the arguments that are a `Name`."""

        def value(argument: "Argument") -> Any:
            match argument:
                case Name(name):
                    return names[name]
                case Construct():
                    return argument.build(**names)
                case _:
                    return argument

        keywords = {name: value(argument) for name, argument in self.keywords.items()}
        return getattr(importlib.import_module(self.module), self.class_name)(*map(value, self.args), **keywords)

    def source(self, start: str = "", **names: str) -> str:
        """The call as Python source after `start`, with expressions for the arguments that are a `Name`."""

        def expression(argument: "Argument") -> str:
            match argument:
                case Name(name):
                    return names[name]
                case Construct():
                    return argument.source(**names)
                case str():
                    return quoted(argument)
                case _:
                    return repr(argument)

        keywords = {name: expression(argument) for name, argument in self.keywords.items()}
        return call(start + self.class_name, [*map(expression, self.args)], keywords)

    def imports(self) -> Iterator[str]:
        """The import lines that `source` needs."""
        yield f"from {self.module} import {self.class_name}"
        for argument in (*self.args, *self.keywords.values()):
            if isinstance(argument, Construct):
                yield from argument.imports()

    def needs(self, name: str) -> bool:
        """Whether an argument is that `Name`."""
        arguments = (*self.args, *self.keywords.values())
        return any(a == Name(name) or (isinstance(a, Construct) and a.needs(name)) for a in arguments)
