"""How tqdm and its relatives draw progress, for the signs of every Python engine; and how jobs of ours do."""

from vigil.engine_table import Phase, Sign

COUNTED = r"(?P<done>\d{1,9})/(?P<total>\d{1,9}) \["
"""`33% Completed | 1/3 [00:02<...`, `33%|###   | 1/3 [...`: shards, files, batches, kernels."""

SIZED = (
    r"(?P<done>\d{1,6}(?:\.\d{1,3})?)(?P<done_unit>[kKMGT]?)i?B?/"
    r"(?P<total>\d{1,6}(?:\.\d{1,3})?)(?P<total_unit>[kKMGT]?)i?B? \["
)
"""`45%|####  | 1.21G/2.69G [...`: bytes of a download."""

_LOADS = (
    "checkpoint shards:",
    "Multi-thread loading shards:",
    "Loading safetensors using",
    "Loading weights:",
)

LOADING = tuple(
    Sign(
        phase=Phase.LOADING_WEIGHTS,
        text=text,
        pattern=COUNTED,
        since="tqdm, the first rank only",
    )
    for text in _LOADS
)
"""Weights that are read; the same bars are drawn for the draft."""

_DOWNLOADS = (
    (".safetensors:", SIZED),
    (".gguf:", SIZED),
    (".bin:", SIZED),
    ("Fetching ", rf"Fetching \d{{1,6}} files.{{0,80}}?{COUNTED}"),
)

DOWNLOADING = tuple(
    Sign(
        phase=Phase.LOADING_WEIGHTS,
        text=text,
        pattern=pattern,
        since="huggingface_hub",
    )
    for text, pattern in _DOWNLOADS
)
"""Weights that are fetched. A file of the configuration may be fetched while the engine still imports: that moves
nothing."""

WORKING = (
    Sign(
        phase=Phase.WORKING,
        text=" tokens; disk: checkpoint ",
        pattern=r" epochs, [\d,]{1,15} steps of [\d,]{1,15} tokens; disk: checkpoint ",
        since="vigil draft train",
    ),
    Sign(
        phase=Phase.WORKING,
        text=" tokens/s  loss ",
        pattern=r"^step (?P<done>\d{1,9})/(?P<total>\d{1,9})  \d{1,12} tokens/s  loss ",
        since="vigil draft train",
    ),
    Sign(
        phase=Phase.WORKING,
        text=" min left",
        pattern=r"^shard (?P<done>\d{1,9}) of (?P<total>\d{1,9}), [\d.]{1,9} min left",
        since="vigil draft extract",
    ),
)
"""Jobs of ours under `vigil run`."""
