"""When FlashAttention can run.

transformers substitutes Hub kernels for packages that are not installed, so every rule looks at the implementation that
would actually be used.
"""

from collections.abc import Callable

from tokendyno.backend.models.families import NO_FLASH
from tokendyno.backend.optimizations.conditions import compiles, half_precision
from tokendyno.backend.optimizations.subject import Rule, Subject, blocked, fallback, note

FA2, FA3, FA4 = "flash_attention_2", "flash_attention_3", "flash_attention_4"
HUB_FA2, HUB_FA3, HUB_FA4 = (f"kernels-community/{name}" for name in ("flash-attn2", "vllm-flash-attn3", "flash-attn4"))

_PACKAGES = {FA2: "flash-attn", FA3: "flash-attn-3", FA4: "flash-attn-4"}
_INSTEAD = {FA2: HUB_FA2, FA3: HUB_FA3, FA4: HUB_FA4}
_TITLES = {
    FA2: "FlashAttention 2",
    FA3: "FlashAttention 3",
    FA4: "FlashAttention 4",
    HUB_FA2: f"The kernel {HUB_FA2}",
    HUB_FA3: f"The kernel {HUB_FA3}",
    HUB_FA4: f"The kernel {HUB_FA4}",
}
_FLASH = "transformers 5.22: modeling_flash_attention_utils.FLASH_ATTENTION_COMPATIBILITY_MATRIX"
_CHECK = "transformers 5.22: PreTrainedModel._check_and_adjust_attn_implementation"
_ANYWAY = (("attention", "auto"),)
_NO_SINKS = (FA2, FA3, HUB_FA2)
"""For a model with attention sinks, transformers takes `HUB_FA3` in place of these."""


def taken(name: str, subject: Subject) -> str:
    """The implementation that transformers uses when a FlashAttention choice is requested."""
    if subject.facts.sinks and name in _NO_SINKS:
        name = HUB_FA3  # GptOssPreTrainedModel._compatible_flash_implementations
    package = _PACKAGES.get(name)
    return _INSTEAD[name] if package and not subject.machine.has(package) else name


def flash_rules(name: str) -> tuple[Rule, ...]:
    """Rules of a FlashAttention choice, which cover its substitutes too."""
    return (
        *_unsupported(name),
        *_out_of_reach(name),
        *_replaced(name),
        note(
            compiles,
            "FlashAttention cannot be traced: each call is a graph break in the compiled step.",
            "transformers 5.22: GenerationMixin._valid_auto_compile_criteria",
        ),
    )


def _repository(s: Subject) -> str:
    """Of the choice that takes any; without its revision."""
    return s.values.get("attention", {}).get("repository", "").partition("@")[0]


ANY_HUB = (
    blocked(
        lambda s: not _repository(s),
        "This takes any attention kernel of the Hub, and none is named. Write attention=org/name.",
        _CHECK,
        fix=_ANYWAY,
    ),
    blocked(
        lambda s: bool(_repository(s)) and not s.machine.has("kernels"),
        "Hub kernels are loaded by the package kernels, which is not installed: pip install kernels.",
        _CHECK,
        fix=_ANYWAY,
    ),
    blocked(
        lambda s: bool(_repository(s)) and s.machine.hub_offline and _repository(s) not in s.machine.hub_kernels,
        "This kernel is not in the Hub cache, and the Hub is offline (HF_HUB_OFFLINE). Point to a local copy with "
        "LOCAL_KERNELS=org/name=/folder.",
        _CHECK,
        fix=_ANYWAY,
    ),
    note(
        lambda s: bool(_repository(s)),
        "Code of that repository runs here with your rights, as with allow_all_kernels=True. Whether its kernel fits "
        "this GPU and model is seen when it is loaded.",
        _CHECK,
    ),
)


def _unsupported(name: str) -> tuple[Rule, ...]:
    """What the device, the model or the number format refuses."""
    return (
        blocked(
            lambda s: s.machine.device != "cuda",
            f"{_TITLES[name]} runs on NVIDIA GPUs only.",
            _FLASH,
            fix=_ANYWAY,
        ),
        blocked(
            lambda s: s.facts.architecture in NO_FLASH,
            "transformers does not support FlashAttention for this architecture.",
            "transformers 5.22: _supports_flash_attn of its class is not True",
            fix=_ANYWAY,
        ),
        blocked(
            lambda s: s.machine.device == "cuda" and not half_precision(s),
            "FlashAttention supports float16 and bfloat16 only, and this arm uses another dtype.",
            "https://github.com/Dao-AILab/flash-attention#nvidia-cuda-support",
            fix=(("dtype", "bfloat16"),),
        ),
        blocked(
            lambda s: s.machine.device == "cuda" and s.machine.capability < (8, 0),
            "FlashAttention needs compute capability 8.0 (Ampere) or later.",
            "https://github.com/Dao-AILab/flash-attention#nvidia-cuda-support",
            fix=_ANYWAY,
        ),
        blocked(
            lambda s: taken(name, s) == HUB_FA3 and s.machine.device == "cuda" and s.machine.capability[0] != 9,
            f"{HUB_FA3} is built for Hopper (compute capability 9.0) only.",
            "https://huggingface.co/kernels-community/vllm-flash-attn3",
            fix=_ANYWAY,
        ),
        blocked(
            lambda s: name == FA4 and s.machine.device == "cuda" and s.machine.capability < (9, 0),
            "FlashAttention 4 needs compute capability 9.0 (Hopper) or later.",
            f"{_FLASH}: cuda_min_major_version",
            fix=_ANYWAY,
        ),
    )


def _out_of_reach(name: str) -> tuple[Rule, ...]:
    """Packages and kernels that are needed and not here."""
    repositories = dict.fromkeys((_INSTEAD.get(name, name), *([HUB_FA3] if name in _NO_SINKS else [])))
    also = f"the package {_PACKAGES[name]} is not installed, " if name in _PACKAGES else ""

    def offline(repo: str) -> Callable[[Subject], bool]:
        def missing(subject: Subject) -> bool:
            needed = subject.machine.device == "cuda" and taken(name, subject) == repo
            return needed and subject.machine.hub_offline and repo not in subject.machine.hub_kernels

        return missing

    return (
        blocked(
            lambda s: "/" in taken(name, s) and s.machine.device == "cuda" and not s.machine.has("kernels"),
            "Hub kernels are loaded by the package kernels, which is not installed.",
            _CHECK,
            fix=_ANYWAY,
        ),
        *(
            blocked(
                offline(repo),
                f"This needs the kernel {repo}: {also}it is not in the Hub cache, and the Hub is offline "
                f"(HF_HUB_OFFLINE). Point to a local copy with LOCAL_KERNELS={repo}=/folder.",
                _CHECK,
                fix=_ANYWAY,
            )
            for repo in repositories
        ),
    )


def _replaced(name: str) -> tuple[Rule, ...]:
    """A fallback where another implementation is used instead."""
    found = []
    if name in _NO_SINKS:
        found.append(
            fallback(
                lambda s: s.facts.sinks and s.machine.device == "cuda",
                f"Only {HUB_FA3} and FlashAttention 4 support attention sinks; transformers uses {HUB_FA3} instead.",
                "transformers 5.22: GptOssPreTrainedModel._compatible_flash_implementations",
                becomes=HUB_FA3,
                fix=(("attention", HUB_FA3),),
            )
        )
    if name in (FA2, FA3):
        found.append(
            fallback(
                lambda s: s.machine.device == "cuda" and not s.facts.sinks and taken(name, s) == _INSTEAD[name],
                f"The package {_PACKAGES[name]} is not installed; transformers uses {_INSTEAD[name]} instead.",
                _CHECK,
                becomes=_INSTEAD[name],
                fix=(("attention", _INSTEAD[name]),),
            )
        )
    if name == FA4:
        found.append(
            note(
                lambda s: s.machine.device == "cuda" and taken(name, s) == HUB_FA4,
                f"The package flash-attn-4 is not installed; transformers uses the kernel {HUB_FA4} instead.",
                _CHECK,
            )
        )
    return tuple(found)
