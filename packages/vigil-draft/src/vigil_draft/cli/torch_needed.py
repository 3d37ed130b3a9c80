"""What is said where torch is not installed."""

from importlib.util import find_spec

from vigil.errors import UsageError


def torch_needed() -> None:
    """Go on where torch, transformers and safetensors are there; UsageError with how to get them where not."""
    missing = [name for name in ("torch", "transformers", "safetensors") if find_spec(name) is None]
    if missing:
        raise UsageError(f"{', '.join(missing)} missing: pip install 'vigil-draft[train]'")
