"""Which differences could explain which kind of failure: a small table, most likely first.

Kinds are those of causes (corpus/TAXONOMY.md and our own); the keys are those of `fields`, `*` standing for anything.
"""

from fnmatch import fnmatchcase

ENGINE = (
    "package.vllm",
    "package.sglang",
    "package.sgl-kernel",
    "package.sglang-kernel",
    "program",
    "program.*",
    "source.*",
)
CODE = ("edited.*", *ENGINE, "python", "file.*")
MODEL = ("model.*",)
DRAFT = ("model.*draft*", "model.*spec*", "flag.*draft*", "flag.*spec*", "model.*", *CODE)
MEMORY = (
    "gpu.*",
    "flag.*mem*",
    "flag.*len*",
    "flag.*ctx*",
    "flag.*seq*",
    "flag.*tp*",
    "flag.*parallel*",
    "model.*",
    "flag.*",
)
NETWORK = ("env.NCCL_*", "env.GLOO_*", "env.UCX_*", "env.IBV_*", "env.MASTER_*", "env.*RANK", "env.WORLD_SIZE")
DEVICES = ("driver", "gpu.*", "env.CUDA_*", "env.NVIDIA_*", "env.LD_*")
BINARIES = (
    "package.torch",
    "package.triton",
    "package.*kernel*",
    "package.*flash*",
    "package.nvidia-*",
    "package.cuda-*",
)
BUILDS = (
    "env.CUDA_HOME",
    "env.CC",
    "env.CXX",
    "env.PATH",
    "env.LD_*",
    "env.*CACHE*",
    "env.TRITON_*",
    "env.MAX_JOBS",
    *BINARIES,
)
HANG = ("edited.*", *ENGINE, *NETWORK, "flag.*", *DEVICES, *BINARIES, "env.*")
FLAGS = ("flag.*", "words", "env.*", *CODE)

EXPLAINS: dict[str, tuple[str, ...]] = {
    "unknown_flag": ("flag.*", "words", *CODE),
    "bad_flag_value": (*FLAGS, *MODEL, "gpu.*"),
    "incompatible_flags": (*FLAGS, *MODEL),
    "model_not_found": ("model.*", "flag.*model*", "flag.-m", "env.HF_*", "env.HOME", "env.XDG_*", "words", "cwd", "disk.*"),
    "corrupt_weights": ("model.*.weights*", "model.*", "disk.*"),
    "missing_weights": ("model.*.weights*", "model.*", *CODE),
    "unsupported_arch": ("model.*.settings*", "package.transformers", *ENGINE, "model.*", "edited.*"),
    "weight_shape_mismatch": ("model.*", "flag.*tp*", "flag.*parallel*", "flag.*quant*", *CODE),
    "draft_mismatch": DRAFT,
    "diverged": ("flag.*lr*", "flag.*", "file.*", "model.*", "package.torch", *CODE),
    "gpu_oom_load": MEMORY,
    "kv_cache_no_memory": MEMORY,
    "oom_cuda_graph": ("gpu.*", "flag.*graph*", "flag.*mem*", "flag.*", "env.PYTORCH_*", *BINARIES),
    "host_oom_killed": ("memory.*", "limit.as", "disk./dev/shm*", "model.*", "flag.*", "env.*"),
    "port_in_use": ("flag.*port*", "env.*PORT*", "env.MASTER_*", "host"),
    "permission": ("env.HOME", "env.*CACHE*", "env.HF_*", "env.TMPDIR", "cwd", "model.*", "words"),
    "cuda_driver_mismatch": ("driver", "kernel", "boot", *BINARIES, "env.LD_*", "gpu.*", "python"),
    "kernel_unsupported_arch": ("gpu.*", *BINARIES, *ENGINE, "env.TORCH_CUDA_ARCH_LIST"),
    "missing_dependency": (*BUILDS, "package.*", "python"),
    "import_error": ("edited.*", *ENGINE, *BINARIES, "package.*", "python", "env.PYTHON*", "env.LD_*", "env.PATH", "file.*"),
    "nccl_init": (*NETWORK, "driver", "gpu.*", "disk./dev/shm*", "limit.*", "package.nvidia-nccl*", "env.CUDA_*", "host"),
    "nccl_timeout": (*NETWORK, "driver", "gpu.*", "edited.*", "package.nvidia-nccl*", *ENGINE, "flag.*timeout*", "env.*"),
    "dist_rendezvous_timeout": (*NETWORK, "flag.*dist*", "flag.*node*", "flag.*addr*", "host", "env.*proxy", "env.*PROXY"),
    "compile_failure": (*BUILDS, *CODE, "gpu.*"),
    "jit_build_failure": (*BUILDS, *CODE, "gpu.*"),
    "hang_loading": ("model.*", "disk.*", *HANG),
    "hang_graph_capture": HANG,
    "hang_warmup": HANG,
    "watchdog_timeout": HANG,
    "crash_runtime": ("edited.*", *ENGINE, "flag.*", "model.*", *BINARIES, "env.*", "driver"),
    "illegal_memory_access": ("edited.*", *ENGINE, *BINARIES, "flag.*", "model.*", "driver", "gpu.*", "env.*"),
    "health_misleading": ("edited.*", *ENGINE, "flag.*", "env.*"),
    "crash_loop": ("words", "flag.*", "file.*", *CODE),
    "disk_full": ("disk.*", "env.*CACHE*", "env.HF_*", "env.TMPDIR", "model.*"),
    "shm_too_small": ("disk./dev/shm*", "env.NCCL_*", "flag.*tp*", "words"),
    "tokenizer_error": ("model.*.settings.token*", "model.*", "package.transformers", "package.tokenizers", *CODE),
    "auth_gated": ("env.HF_*", "env.HUGGING*", "model.*", "flag.*model*"),
    "spec_slower": DRAFT,
    "spec_not_active": DRAFT,
    "SIG001": ("memory.*", "limit.*", "disk./dev/shm*", "edited.*", *ENGINE, "flag.*"),
    "CMD001": ("words", "env.PATH", "cwd", "python"),
    "CMD002": ("words", "env.PATH", "cwd", "python"),
    "GPU001": ("driver", "gpu.*", "boot", "kernel", *BINARIES, "env.CUDA_*"),
    "LIM001": ("limit.*", "memory.*", "disk./dev/shm*", "flag.*", "env.*", "kernel"),
    "HOST001": ("boot", "kernel", "driver"),
    "other": ("edited.*", *ENGINE, "flag.*", "env.*", "model.*"),
}  # fmt: skip

# How much a difference says where no cause asks for it.
USUALLY = (
    "flag.*", "words", "edited.*", *ENGINE, "file.*", "model.*", "env.NCCL_*", "env.*", *BINARIES, "driver", "gpu.*",
    "package.*", "python", "memory.limit", "limit.*", "memory.*", "disk.*", "kernel", "glibc", "host", "cwd", "boot",
)  # fmt: skip


def rank(key: str, order: tuple[str, ...]) -> int | None:
    """Return the place of a field in an order, 0 first; None where it does not stand there."""
    return next((place for place, pattern in enumerate(order) if fnmatchcase(key, pattern)), None)
