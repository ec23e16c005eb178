"""Rows of the history: the runs that a visitor may see and was looking for, the newest first."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tokendyno.backend.errors import UNDECODABLE
from tokendyno.backend.history.search import Search
from tokendyno.backend.hosting.limits import Limits
from tokendyno.backend.hosting.visitor import GUEST, Visitor
from tokendyno.backend.models import RANDOM
from tokendyno.backend.redact import without_controls
from tokendyno.backend.runs.row import ArmText
from tokendyno.backend.runs.store import Store
from tokendyno.backend.units import plural

MAX_OF_MODEL = 500

_COLUMNS = (
    "id",
    "created",
    "kind",
    "model",
    "label",
    "work",
    "machine",
    "arms",
    "origin",
    "status",
    "verdict",
    "name",
    "note",
    "owner",
    "shared",
    "trial",
)
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM runs"


class Row(msgspec.Struct, frozen=True):
    """A run in the history.

    created   seconds since the epoch
    line      its verdict, or how it ended; None while it runs
    mine      whether the visitor may name, share and delete it
    origin    "" for a run of this machine, else imported
    owner     who shared it, where that is somebody else
    trial     the ablation or sweep whose trials this row stands for, or ""; `trials`: how many these are
    """

    id: str
    created: float
    kind: str
    model: str
    label: str
    work: str
    machine: str
    arms: list[ArmText]
    origin: str
    status: str
    line: str | None
    name: str
    note: str
    mine: bool
    shared: bool
    owner: str = ""
    trial: str = ""
    trials: int = 0


class RunList(msgspec.Struct, frozen=True):
    """A page of rows. `total`: rows of all pages; `kept`: rows that the visitor could find at all."""

    rows: list[Row]
    total: int
    kept: int
    page: int
    per_page: int


class Listing:
    """Reads the history file. Any thread may call it."""

    def __init__(self, store: Store, limits: Limits) -> None:
        self._store, self._team = store, limits.mode == "team"

    def find(self, search: Search, visitor: Visitor) -> RunList:
        """One page of the runs that a visitor looks for. InputError if the history cannot be read now."""
        if self._store.path is None:
            return RunList([], 0, 0, 0, search.per_page)
        self._store.settle()
        where, values = search.where()
        scope, mine = self._scope(visitor)
        values |= mine
        words = {f"word{at}": word for at, word in enumerate(search.words) if word.isascii()}
        group = f"iif(trial <> '' AND trial NOT IN ({', '.join(f':{name}' for name in words)}), trial, rowid)"
        counted = f"SELECT count(DISTINCT {group}) FROM runs WHERE {scope}"
        ((kept,),) = self._store.query(counted, mine | words)
        first = search.page * search.per_page
        matching = self._store.query(  # one pass finds all that match; of those on the page everything is read
            f"SELECT rowid, trial FROM runs WHERE {scope} AND {where or 'TRUE'} ORDER BY created DESC, id", values
        )
        newest = dict[object, int]()
        for rowid, trial in matching:
            newest.setdefault(trial if trial and trial not in search.words else rowid, rowid)
        total, wanted = len(newest), [*newest.values()][first : first + search.per_page]
        places = ", ".join("?" * len(wanted))
        found = self._store.query(f"{_SELECT} WHERE rowid IN ({places}) ORDER BY created DESC, id", wanted)
        rows = [_row(values, visitor) for values in found]
        return RunList(self._groups(rows, search, scope, mine), total, kept, search.page, search.per_page)

    def _groups(self, rows: list[Row], search: Search, scope: str, mine: dict[str, object]) -> list[Row]:
        """The same rows, where those that stand for all trials of an ablation or a sweep say how many these are."""
        trials = [row.trial for row in rows if row.trial and row.trial not in search.words]
        if not trials:
            return rows
        names = {f"trial{at}": trial for at, trial in enumerate(trials)}
        places = ", ".join(f":{name}" for name in names)
        counts = dict(
            self._store.query(
                f"SELECT trial, count(*) FROM runs WHERE {scope} AND trial IN ({places}) GROUP BY trial", mine | names
            )
        )

        def group(row: Row, count: int) -> Row:
            """That the newest trial was given up, or ran the arm it ran, says nothing of all of them."""
            status, arms = ("done" if row.status in ("cancelled", "failed") else row.status), row.arms
            return msgspec.structs.replace(
                row, trials=count, work=plural(count, "trial"), line="", status=status, arms=arms if arms[1:] else []
            )

        # no count where control characters of an imported run's id are not in what is shown of it
        return [group(row, counts[row.trial]) if row.trial in counts else row for row in rows]

    def one(self, run_id: str, visitor: Visitor) -> Row | None:
        """The row of a run that the visitor may find; None if there is none."""
        scope, values = self._scope(visitor)
        found = self._query(f"{_SELECT} WHERE id = :id AND {scope}", {**values, "id": run_id})
        return _row(found[0], visitor) if found else None

    def of_model(self, model: str, visitor: Visitor) -> list[Row]:
        """The newest runs of a model, with its own or with random weights, that ended well."""
        scope, values = self._scope(visitor)
        named = f"model LIKE '{RANDOM}%' AND trim(substr(model, {len(RANDOM) + 1})) = :model"
        found = self._query(
            f"{_SELECT} WHERE {scope} AND (model = :model OR {named}) AND kind = 'run' AND status = 'done' "
            f"ORDER BY created DESC, id LIMIT {MAX_OF_MODEL}",
            values | {"model": model},
        )
        return [_row(values, visitor) for values in found]

    def named(self, beginning: str, visitor: Visitor, deleted: bool = False) -> list[str]:
        """Ids of the visitor's own runs that begin so, at most nine. `deleted`: of those that can be had back."""
        found = self._query(
            "SELECT id FROM runs WHERE owner = ? AND substr(id, 1, ?) = ? AND (deleted_at IS NOT NULL) = ? "
            "ORDER BY created DESC LIMIT 9",
            (visitor.owner, len(beginning), beginning, deleted),
        )
        return [str(run_id) for (run_id,) in found]

    def _query(self, sql: str, values: Sequence[object] | Mapping[str, object]) -> list[tuple[Any, ...]]:
        """Rows of the file, with what waits to be written; none of a history in memory."""
        if self._store.path is None:
            return []
        self._store.settle()
        return self._store.query(sql, values)

    def _scope(self, visitor: Visitor) -> tuple[str, dict[str, object]]:
        """The condition on runs that the visitor may find, his own and in a team what others share; and its values."""
        whose = "(owner = :owner OR shared)" if self._team else "owner = :owner"
        return f"{whose} AND deleted_at IS NULL", {"owner": visitor.owner}


def _row(values: Sequence[Any], visitor: Visitor) -> Row:
    """The row of these columns as they were read; damage may have left anything in them."""
    columns = dict(zip(_COLUMNS, values, strict=True))
    texts = {
        name: without_controls(str(value))
        for name, value in columns.items()
        if name not in ("created", "verdict", "shared", "arms")
    }
    try:
        arms = msgspec.json.decode(str(columns["arms"]) or "[]", type=list[ArmText])
    except UNDECODABLE:
        arms = []
    owner, mine = texts.pop("owner"), columns["owner"] == visitor.owner
    return Row(
        **texts,
        created=columns["created"] if isinstance(columns["created"], float) else 0.0,
        arms=arms,
        line=None if columns["status"] == "running" else str(columns["verdict"] or ""),
        mine=mine,
        shared=bool(columns["shared"]),
        owner="" if mine or owner.startswith(GUEST) else owner,
        trials=0,
    )
