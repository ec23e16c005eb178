"""Loads gpt-oss with its experts in MXFP4 as they lie in the checkpoint: no kernel of the Hub, nothing unpacked.

Ranks that share the model read no more of a file than their part: whole experts, or of each some rows of gate and up
and the blocks of down for the same inner numbers.
"""

from typing import Any

from transformers.quantizers.auto import AUTO_QUANTIZER_MAPPING
from transformers.quantizers.quantizer_mxfp4 import Mxfp4HfQuantizer

from tokendyno.backend.worker.patch.experts import PackedExperts

_EXPERTS = "model.layers.*.mlp.experts"
_PACKED = [f"{matrix}_{part}" for matrix in ("gate_up_proj", "down_proj") for part in ("blocks", "scales", "bias")]
SHARED_PACKED = {f"{_EXPERTS}.{name}": "grouped_gemm" for name in _PACKED}
"""How ranks share whole experts out, by parameter; the styles are those of `parallel.py` and of transformers."""

SPLIT_PACKED = {
    f"{_EXPERTS}.gate_up_proj_blocks": "split_middle",
    f"{_EXPERTS}.gate_up_proj_scales": "split_middle",
    f"{_EXPERTS}.down_proj_blocks": "split_blocks",
    f"{_EXPERTS}.down_proj_scales": "split_blocks",
    f"{_EXPERTS}.gate_up_proj": "replicate",  # not there, but the plan for dense experts names them
    f"{_EXPERTS}.down_proj": "replicate",
}
"""How they split each expert, beside that plan. A shape is (experts, rows, blocks of a row, bytes)."""


class PackedQuantizer(Mxfp4HfQuantizer):  # type: ignore[misc]
    """Gives the model parameters of the checkpoint's names and shapes, so that each tensor is read as it is."""

    serialized_names: dict[str, list[str]] = {}

    def validate_environment(self, *args: Any, **kwargs: Any) -> None:
        """Whether the kernels run here is for the rules of the axis experts."""

    def param_needs_quantization(self, model: Any, param_name: str, **kwargs: Any) -> bool:
        return False

    def _process_model_before_weight_loading(self, model: Any, **kwargs: Any) -> None:
        config = model.config.get_text_config()
        for name, module in list(model.named_modules()):
            if name.endswith("mlp.experts"):
                model.set_submodule(name, PackedExperts(config, module.gate_up_proj_bias.dtype))
        model._ep_plan = (model._ep_plan or {}) | SHARED_PACKED
        model._tp_plan = (model._tp_plan or {}) | SPLIT_PACKED

    def get_load_operations(self) -> dict[str, Any]:
        return {}

    def get_state_dict_and_metadata(self, model: Any) -> tuple[Any, dict[str, Any]]:
        return None, {}

    @property
    def is_compileable(self) -> bool:
        return True


def read_packed(packed: bool) -> None:
    """Whether the next MXFP4 checkpoints are read so, or as transformers does."""
    AUTO_QUANTIZER_MAPPING["mxfp4"] = PackedQuantizer if packed else Mxfp4HfQuantizer
