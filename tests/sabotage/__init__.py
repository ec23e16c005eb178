"""Every choice is broken as happens in the world: a layer that is not converted, a setting that is lost, a fallback.

A file is about one axis: a table of what is broken, by choice and manner (`saboteur.py`), from which it gets its two
tests. A row that is trusted for the choice must turn, and without the patch none does. What needs a card is in
`tests/gpu/test_sabotage.py`. In CI runs the first manner of each choice, in `tools/full` every one.
"""
