"""Writes ui/js/values.d.ts, the types of what components take from Python: `python -m tools.js_types`.

A namespace for each component, with its structs as they are on the wire: `tsc` reads the JavaScript against them. What
several components take is written with the first of them.
"""

import json
from functools import partial

import msgspec
from msgspec import inspect

from tokendyno.backend.ablation.advise.view import AdviceView
from tokendyno.backend.ablation.sweep_view import SweepView
from tokendyno.backend.ablation.view import WorthView
from tokendyno.backend.claims.view import ClaimsDocument
from tokendyno.backend.fit.view import FitView
from tokendyno.backend.history.pins import SideBySide
from tokendyno.backend.paths import ROOT
from tokendyno.backend.views.batch_live import BatchDelta
from tokendyno.backend.views.fairness import Fairness
from tokendyno.backend.views.glossary import Term
from tokendyno.backend.views.live import Delta
from tokendyno.ui.compare.palette import Offers
from tokendyno.ui.compare.verdicts import Verdicts
from tokendyno.ui.components.setting_chips import ChipLine
from tokendyno.ui.components.stale_line import Stale
from tokendyno.ui.fit.request import Amounts
from tokendyno.ui.history.answer import Runs
from tokendyno.ui.stories.page import Shown

FILE = ROOT / "ui" / "js" / "values.d.ts"
VALUES: dict[str, tuple[type[msgspec.Struct], ...]] = {
    "Arm": (Verdicts, Stale),
    "Chips": (ChipLine,),
    "Claims": (ClaimsDocument,),
    "Fair": (Fairness,),
    "Fit": (FitView, Amounts),
    "Live": (Delta, Term),
    "Batch": (BatchDelta,),
    "Palette": (Offers,),
    "Story": (Shown,),
    "Worth": (WorthView,),
    "Advise": (AdviceView,),
    "History": (Runs, SideBySide),
    "Sweep": (SweepView,),
}


def text() -> str:
    """The whole file."""
    lines = ["// What components take from Python. Written by python -m tools.js_types; a test compares.", ""]
    places: dict[type, str] = {}
    for namespace, roots in VALUES.items():
        structs: dict[str, inspect.StructType] = {}
        write = partial(_written, namespace=namespace, structs=structs, places=places)
        lines.append(f"declare namespace {namespace} {{")
        for root in roots:
            write(inspect.type_info(root))
        for name, struct in structs.items():
            fields = (f"{field.encode_name}: {write(field.type)};" for field in struct.fields)
            lines += [f"  interface {name} {{", *(f"    {field}" for field in fields), "  }"]
        lines += ["}", ""]
    return "\n".join(lines)


def _written(
    kind: inspect.Type, namespace: str, structs: dict[str, inspect.StructType], places: dict[type, str]
) -> str:
    """A type in TypeScript. Structs that it is made of are added to those of the namespace, unless `places` says that
    they stand in another."""
    write = partial(_written, namespace=namespace, structs=structs, places=places)
    match kind:
        case inspect.StructType(cls=cls):
            place = places.setdefault(cls, namespace)
            if place != namespace:
                return f"{place}.{cls.__name__}"
            if cls.__name__ not in structs:
                structs[cls.__name__] = kind
                for field in kind.fields:
                    write(field.type)
            assert structs[cls.__name__].cls is cls, f"two structs of one component are called {cls.__name__}"
            return cls.__name__
        case inspect.IntType() | inspect.FloatType():
            return "number"
        case inspect.StrType():
            return "string"
        case inspect.BoolType():
            return "boolean"
        case inspect.NoneType():
            return "null"
        case inspect.LiteralType(values=values):
            return " | ".join(json.dumps(value) for value in values)
        case inspect.UnionType(types=types):
            return " | ".join(write(member) for member in types)
        case inspect.TupleType(item_types=types):
            return f"[{', '.join(write(item) for item in types)}]"
        case inspect.CollectionType(item_type=item):
            text = write(item)
            return f"({text})[]" if " " in text else f"{text}[]"
        case inspect.DictType(value_type=value):
            return f"{{ [key: string]: {write(value)} }}"
        case inspect.CustomType(cls=cls) if cls is object:
            return "any"
        case inspect.Metadata(type=inner):
            return write(inner)
    raise TypeError(f"no way to write {kind}")


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
