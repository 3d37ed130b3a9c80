"""Packages that people patch, or swap a build of, beside the engine itself."""

PATCHED = (
    "torch",
    "transformers",
    "triton",
    "flashinfer-python",
    "flash-attn",
    "xgrammar",
    "compressed-tensors",
    "deep-gemm",
    "deep-ep",
    "huggingface-hub",
)
