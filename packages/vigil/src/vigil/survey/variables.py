"""What a start was asked for, as it may be kept: its words, and the variables that an engine, NCCL, CUDA, torch ... read.

A value that is secret by its name or its look is masked. That it changed shows by a keyed hash: the key lies in the state folder
of this host and nowhere else, so that what is kept, or shown, gives nobody a value to guess at.
"""

import hashlib
import hmac
import os
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from ..launcher import state
from ..observer.life import state_folder
from ..observer.named import MASK
from ..observer.redact import Redactor, is_secret_name, secrets_of

SALT_BYTES = 32
LONGEST_VALUE = 2000
LONGEST_WORD = 4000
MOST_WORDS = 1000
MOST_VARIABLES = 400

# What is read by somebody between the command and the first token. A name that ends in "_" is the beginning of one.
READ = (
    # the engines
    "VLLM_", "SGLANG_", "SGL_", "LLAMA_", "GGML_", "TRTLLM_", "TLLM_", "FLASHINFER_", "FLASH_ATTENTION_", "DG_", "DEEP_GEMM_",
    "AITER_", "LMCACHE_", "MOONCAKE_", "XGRAMMAR_", "OUTLINES_", "USE_TRITON_",
    # communication
    "NCCL_", "RCCL_", "GLOO_", "UCX_", "NVSHMEM_", "IBV_", "FI_", "MPI_", "OMPI_", "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE",
    "RANK", "LOCAL_RANK", "RAY_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy",
    "no_proxy",
    # devices and their libraries
    "CUDA_", "CUDNN_", "CUBLAS_", "CUTE_", "CUTLASS_", "NVIDIA_", "NVTE_", "NVCC_", "HIP_", "ROCM_", "ROCR_", "HSA_", "MIOPEN_",
    "ASCEND_", "ZE_", "ONEAPI_",
    # torch and what compiles
    "TORCH", "PYTORCH_", "TRITON_", "TORCHINDUCTOR_", "CC", "CXX", "MAX_JOBS", "NINJA_", "OMP_", "MKL_", "KMP_", "OPENBLAS_",
    "MALLOC_", "TCMALLOC_", "JEMALLOC_",
    # models and caches
    "HF_", "HUGGINGFACE_", "HUGGING_FACE_", "TRANSFORMERS_", "SAFETENSORS_", "TOKENIZERS_", "MODELSCOPE_", "XDG_CACHE_HOME",
    "TMPDIR", "HOME",
    # which program, which library, which module
    "PATH", "LD_", "PYTHON", "VIRTUAL_ENV", "CONDA_PREFIX", "UV_PROJECT_ENVIRONMENT", "LANG", "LC_ALL",
)  # fmt: skip
OPEN_ENDED = ("TORCH", "PYTHON")


class Keeper(NamedTuple):
    """Masks secrets and hashes them with the key of this state folder. `key` None: a change of them cannot be told."""

    redactor: Redactor
    key: Optional[bytes]

    @property
    def key_id(self) -> Optional[str]:
        """Name the key: hashes by another one are not to be compared."""
        return hashlib.sha256(b"vigil" + self.key).hexdigest()[:8] if self.key else None

    def hides(self, flag: str) -> bool:
        """Tell whether a flag's value is a secret, or a file that holds one."""
        return flag in self.redactor.key_flags or is_secret_name(flag)

    def digest(self, value: bytes) -> Optional[str]:
        """Return the keyed hash of a value, 16 hexadecimal digits, or None without a key."""
        return hmac.new(self.key, value, "sha256").hexdigest()[:16] if self.key else None

    def hidden(self, shown: str, value: str) -> Dict[str, Any]:
        """Return a value that is not shown whole."""
        return {"shown": shown, "digest": self.digest(raw_bytes(value))}


def keeper(words: Sequence[str], env: Dict[str, str], key_flags: Sequence[str]) -> Keeper:
    """Return what keeps the secrets of this start out of everything that is kept of it."""
    redactor = Redactor()
    redactor.key_flags = tuple(key_flags)
    redactor.learn(secrets_of(words, env.items(), key_flags))
    return Keeper(redactor, read_key())


def read_key() -> Optional[bytes]:
    """Return the key of this state folder, made at the first use (0600); None where there can be none."""
    path = os.path.join(state_folder(), "salt")
    try:
        return _read(path) or _make(path)
    except OSError:
        return None


def _read(path: str) -> Optional[bytes]:
    try:
        with open(path, "rb") as file:
            key = file.read(SALT_BYTES)
    except FileNotFoundError:
        return None
    return key if len(key) == SALT_BYTES else None


def _make(path: str) -> Optional[bytes]:
    partial = "%s.%d" % (path, os.getpid())
    handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, os.urandom(SALT_BYTES))
        os.link(partial, path)  # another start may make it at this moment: one of us wins
    except FileExistsError:
        pass
    finally:
        os.close(handle)
        state.discard(partial)
    return _read(path)


def is_read(name: str) -> bool:
    """Tell whether a variable is one that somebody is known to read."""
    return any(name.startswith(one) if one.endswith("_") or one in OPEN_ENDED else name == one for one in READ)


def kept_variables(env: Dict[str, str], keep: Keeper) -> Dict[str, Any]:
    """Return the variables that matter, by name: the value, or what stands for one that is secret or long."""
    found: Dict[str, Any] = {}
    for name in sorted(env):
        if is_read(name) and len(found) < MOST_VARIABLES:
            found[name[:200]] = _kept(name, env[name], keep)
    return found


def _kept(name: str, value: str, keep: Keeper) -> Any:
    if is_secret_name(name):
        return keep.hidden(MASK if value else "", value)
    shown = keep.redactor.clean(value)
    if len(shown) > LONGEST_VALUE:
        return keep.hidden(shown[:LONGEST_VALUE] + "...", value)
    return shown if shown == value else keep.hidden(shown, value)


def kept_words(words: Sequence[str], keep: Keeper) -> Tuple[List[str], Dict[str, Optional[str]]]:
    """Return the words without secrets, and a hash of what was hidden, by the flag before it (or the number of the word)."""
    raw = list(words[:MOST_WORDS])
    shown = [word[:LONGEST_WORD] for word in keep.redactor.clean_argv(raw)]
    hidden: Dict[str, Optional[str]] = {}
    for index, (before, after) in enumerate(zip(raw, shown)):  # noqa: B905 - zip(strict) is not in 3.9
        if before != after:
            hidden[_flag_of(raw, index)] = keep.digest(raw_bytes(before.partition("=")[2] or before))
    return shown, hidden


def _flag_of(words: Sequence[str], index: int) -> str:
    for word in words[max(0, index - 1) : index + 1][::-1]:
        if word.startswith("-"):
            return word.partition("=")[0][:200]
    return "word %d" % (index + 1)


def texts(env: Iterable[Tuple[bytes, bytes]]) -> Dict[str, str]:
    """Return an environment as texts; bytes that are no UTF-8 become lone surrogates."""
    return {_text(name): _text(value) for name, value in env}


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def raw_bytes(text: str) -> bytes:
    """Return the bytes that a text was made from."""
    return text.encode("utf-8", "surrogateescape")
