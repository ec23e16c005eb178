"""Changes that may make an arm fit in memory, least harmful first, composed from what axes declare of their choices."""

from tokendyno.backend.optimizations import all_axes


def remedies() -> tuple[dict[str, str], ...]:
    """Single changes and combinations, in the order in which they are tried.

    Combinations come after all single changes of the same kind of loss: the worse one of the two decides the kind.
    """
    losses = {(axis.name, choice.name): choice.loss for axis in all_axes() for choice in axis.choices}
    found: list[tuple[tuple[int, bool, int, int], dict[str, str]]] = []
    for axis in all_axes():
        for choice in axis.choices:
            if choice.loss is None:
                continue
            found.append(((choice.loss // 10, False, choice.loss, 0), {axis.name: choice.name}))
            for index, partner in enumerate(choice.combines):
                worse = max(choice.loss, losses.get(partner) or 0)
                both = dict([(axis.name, choice.name), partner])
                ordered = {other.name: both[other.name] for other in all_axes() if other.name in both}
                found.append(((worse // 10, True, worse, index), ordered))
    return tuple(change for _, change in sorted(found, key=lambda item: item[0]))
