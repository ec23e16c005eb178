"""What predicted memory depends on: the parts of a plan, and the shape of a run."""

from dataclasses import dataclass

from tokendyno.backend.hardware import Machine
from tokendyno.backend.plan import DYNAMIC, GRAPH_MODES, CacheKind, Plan


@dataclass(frozen=True, slots=True)
class Setup:
    """How a run uses memory and bandwidth.

    capability    compute capability of the GPU, (0, 0) if unknown
    max_places    slots of a static cache; None: as many as needed
    chunk         tokens of the prompt in one pass; 0: all of them
    graphs        who captures CUDA graphs, "compile" or "manual"; "" for none
    compiled      graphs that torch.compile makes: of the step, and of the pass over the prompt
    prompt_graph  the pass over the prompt is captured: its temporary tensors stay reserved while tokens are generated
    cuda_build    the installed torch carries the CUDA libraries, which take host memory even where no GPU is used
    tensor_parallel, expert_parallel  GPUs that share the model: `tp_size` and `ep_size` of transformers
    devices       GPUs over which `device_map="auto"` spreads the layers
    alike         the texts of a batch are copies of one, and take the same experts
    """

    dtype: str = "auto"
    quantization: str = "none"
    cache: CacheKind = DYNAMIC
    attention: str | None = None
    experts: str | None = None
    device: str = "cpu"
    capability: tuple[int, int] = (0, 0)
    max_places: int | None = None
    padded: bool = False
    chunk: int = 0
    graphs: str = ""
    compiled: int = 0
    prompt_graph: bool = False
    cuda_build: bool = False
    tensor_parallel: int = 1
    expert_parallel: int = 1
    devices: int = 1
    fused: bool = False
    alike: bool = False

    @property
    def cuda(self) -> bool:
        return self.device.startswith("cuda")


def setup_of(plan: Plan, machine: Machine) -> Setup:
    """The setup of a plan on a machine."""
    graphs = ""
    if plan.generate.cuda_graphs == "manual":
        local = plan.load.kernels == "local" and not plan.generate.prefill_graphs  # whose GEMMs do not use cuBLAS
        graphs = "" if local else "manual"
    elif plan.generate.compile_mode in GRAPH_MODES and plan.generate.cuda_graphs != "off":
        graphs = "compile"
    return Setup(
        dtype=plan.load.dtype,
        quantization=plan.load.quantization,
        cache=plan.generate.cache,
        attention=plan.load.attention,
        experts=plan.load.experts,
        device=plan.load.device,
        capability=machine.capability,
        padded=plan.generate.shapes in ("padded", "buckets"),
        chunk=plan.generate.prefill_chunk,
        graphs=graphs,
        compiled=(1 + plan.generate.prefill_compiled) if plan.generate.compile_mode else 0,
        prompt_graph=plan.generate.prefill_graphs,
        cuda_build=machine.torch_has_cuda,
        tensor_parallel=plan.load.parallel.tensor,
        expert_parallel=plan.load.parallel.expert,
        devices=plan.load.parallel.devices,
        fused=plan.load.projections == "fused",
    )
