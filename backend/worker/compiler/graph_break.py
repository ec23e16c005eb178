"""A forward pass that torch.compile cannot trace in one piece, on purpose: to see where the ledger names the line."""

from typing import Any

from torch import nn


def break_graph(model: Any, how: str) -> Any:
    """Ahead of the model's last linear layer, that of the scores in a decoder: a print, or a branch on a value that
    only the data decides. Neither changes what is computed. Returns what removes it."""

    def with_print(layer: Any, args: Any) -> None:
        print("printed on purpose, in the forward pass")  # noqa: T201

    def with_branch(layer: Any, args: Any) -> None:
        if args[0].sum() > 0:  # the graph ends here: the branch is taken by Python, once the sum is there
            layer.branch_taken = True

    last = model.get_output_embeddings() or [one for one in model.modules() if isinstance(one, nn.Linear)][-1]
    return last.register_forward_pre_hook({"print": with_print, "branch": with_branch}[how])
