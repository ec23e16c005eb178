"""Every choice is broken on purpose, and its row of the ledger must turn.

A test file of this folder is about one axis. It lists what it breaks, and how, as `Sabotage` records (`saboteur.py`) in
a module-level `SABOTEURS`, and gets its tests from them:

    SABOTEURS = [
        Sabotage("attention", "sdpa", "removed", removed),
        Sabotage("attention", "sdpa", "half of the layers", half, tier="full"),
    ]
    test_sabotage_turns_the_row, test_the_control_is_verified = tests_of(SABOTEURS)

`removed` and `half` are context managers without arguments that patch torch, transformers or our seams while a run of
that choice is loaded, measured and proved in this process. The row's status must then not be `verified` (or must be one
of `turns_to`), and without the patch it must be; one run without a patch serves all sabotage of an arm.

Tiers: "slow" for the one sabotage a choice that guards most, if it takes under 3 s and does not compile; "full" for all
other manners and for everything that compiles; "gpu" in `tests/gpu/test_sabotage*.py`.

Where no sabotage can be written, a module-level `REASONS` says why, by (axis, choice). `test_every_choice.py` collects
both from every test file here and from `tests/gpu/test_sabotage*.py`, and fails for a choice that neither names.
"""
