"""A graph break on purpose, to see how the ledger names its line."""

from typing import Any

from torch import nn


def break_graph(model: Any, how: str) -> Any:
    """Break the graph ahead of the model's last linear layer (a decoder's head), by a print or a branch on its input.
    Neither changes what is computed. Returns the handle that removes it."""

    def with_print(layer: Any, args: Any) -> None:
        print("printed on purpose, in the forward pass")  # noqa: T201

    def with_branch(layer: Any, args: Any) -> None:
        if args[0].sum() > 0:  # the graph ends here: the branch is taken by Python, once the sum is there
            layer.branch_taken = True

    last = model.get_output_embeddings() or [m for m in model.modules() if isinstance(m, nn.Linear)][-1]
    return last.register_forward_pre_hook({"print": with_print, "branch": with_branch}[how])
