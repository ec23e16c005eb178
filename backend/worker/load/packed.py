"""Loads gpt-oss with its experts in MXFP4 as they lie in the checkpoint: no kernel of the Hub, nothing unpacked."""

from typing import Any

from transformers.quantizers.auto import AUTO_QUANTIZER_MAPPING
from transformers.quantizers.quantizer_mxfp4 import Mxfp4HfQuantizer

from tokendyno.backend.worker.patch.experts import PackedExperts


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
