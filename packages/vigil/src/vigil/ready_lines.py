"""Each engine's own word that it serves: for its table, which reads a log while it grows, and for the diagnosis of any log.

A new engine's word stands here and in no other place: what a start outlived until then is not what it died of.
"""

SGLANG = ("The server is fired up and ready to roll!",)
"""Its own first request comes after uvicorn's "startup complete"."""
VLLM = ("Application startup complete.",)
LLAMACPP = ("listening on http", "server is listening on", "llama_server: listening on")
"""The last two are there for unix sockets, before and since 2026."""
UVICORN = ("Uvicorn running on",)
"""Of programs that nobody knows: it comes after the bind, and "startup complete" before it, so that a busy port could still end
the start."""
_BY_ENGINE = {"sglang": SGLANG, "vllm": VLLM, "llamacpp": LLAMACPP}
ALL = (*SGLANG, *VLLM, *LLAMACPP, *UVICORN)


def ready_lines(engine: str | None) -> tuple[str, ...]:
    """Return an engine's own words that it serves; those of all where it is not known, or is no engine (`generic`)."""
    return _BY_ENGINE.get(engine or "", ALL)
