"""The limit of recompilations outlives a prompt in chunks."""

import pytest
import torch

from tests.support.tiny_models import tiny
from tokendyno.backend.worker.compiler.limit import recompile_limit_kept


def test_generate_raises_the_limit_and_it_is_put_back() -> None:
    ids, before = torch.tensor([[5, 6, 7, 8, 9]]), 5
    with torch._dynamo.config.patch(recompile_limit=before):  # a monkeypatch would take it away for good
        with recompile_limit_kept():
            tiny("llama").generate(ids, max_new_tokens=2, do_sample=False, eos_token_id=None, prefill_chunk_size=2)
            assert torch._dynamo.config.recompile_limit == 64 != before, "transformers no longer raises it"
        assert torch._dynamo.config.recompile_limit == before
        with pytest.raises(ValueError, match="as it is"), recompile_limit_kept():
            torch._dynamo.config.recompile_limit = 3
            raise ValueError("as it is")
        assert torch._dynamo.config.recompile_limit == before
