"""A server that we do not know, and jobs: only what uvicorn, tqdm and huggingface_hub print for everybody.

A job is this table with `serves` False; the caller says which it is.
"""

from vigil.engine_table import EngineTable, Phase, Sign
from vigil.engines.bars import DOWNLOADING, LOADING, WORKING
from vigil.ready_lines import UVICORN

TABLE = EngineTable(
    name="generic",
    title="another program",
    signs=(
        *LOADING,
        *DOWNLOADING,
        *WORKING,
        Sign(phase=Phase.BINDING, text="Started server process"),
        Sign(phase=Phase.BINDING, text="Waiting for application startup."),
        Sign(phase=Phase.SERVING, text="Application startup complete."),
        *(Sign(phase=Phase.SERVING, text=text) for text in UVICORN),
    ),
    ready_lines=UVICORN,
    harmless=(
        "FutureWarning:",
        "DeprecationWarning:",
        "leaked semaphore objects",
        "destroy_process_group() was not called",
    ),
    fatal_lines=("Application startup failed. Exiting.", "error while attempting to bind on address"),
    silent_s={Phase.LAUNCHING: 300.0, Phase.BINDING: 120.0},
    port_flags=("--port", "-p"),
    port_variables=("PORT",),
    host_flags=("--host", "--bind"),
    model_flags=(),
    name_flags=(),
    default_port=8000,
)
