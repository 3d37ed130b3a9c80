"""What a plugin relies on in its engine, as data, and what of it is not so: looked at when the plugin is loaded, by `inspect`.

Where anything differs the engine is left as it was: a hook on a name that has another meaning now is worse than none.
"""

import importlib
import inspect
from typing import Any, List, NamedTuple, Sequence, Tuple


class Function(NamedTuple):
    """A function of the engine: parameters that it must have, and attributes that its body must use (names in its code)."""

    name: str
    parameters: Tuple[str, ...] = ()
    uses: Tuple[str, ...] = ()


class Fields(NamedTuple):
    """A class of the engine, and fields or attributes that it must have."""

    name: str
    fields: Tuple[str, ...]


SCHEDULER = "vllm.v1.core.sched.scheduler.Scheduler"
VLLM = (
    Function(f"{SCHEDULER}.__init__", ("self", "vllm_config"), ("dynamic_sd_lookup", "running", "num_spec_tokens")),
    Function(f"{SCHEDULER}.schedule", ("self",), ("dynamic_sd_lookup", "running")),
    Function(f"{SCHEDULER}.make_spec_decoding_stats", ("self", "num_draft_tokens", "num_accepted_tokens")),
    Fields("vllm.v1.core.sched.output.SchedulerOutput", ("num_spec_tokens_to_schedule",)),
    Fields("vllm.config.speculative.SpeculativeConfig", ("num_speculative_tokens_per_batch_size",)),
)

CONTROLLER = "sglang.srt.speculative.adaptive_runtime_state.AdaptiveController"
RECEIVER = "sglang.srt.managers.scheduler_components.request_receiver.SchedulerRequestReceiver"
SGLANG_SCHEDULER = "sglang.srt.managers.scheduler.Scheduler"
SGLANG = (
    Function(f"{CONTROLLER}.__init__", ("self", "worker"), ("params",)),
    Function(
        f"{CONTROLLER}.init_states", ("cuda_graph_bs",), ("params", "set_cuda_graph_bs", "cuda_graph_bs_for_step")
    ),
    Function(f"{CONTROLLER}.activate_step_by_batch", ("batch_size",), ("params", "get_steps_for_batch", "_activate")),
    Function(
        f"{CONTROLLER}.on_verify_complete",
        ("num_correct_drafts_per_req", "batch_size"),
        ("params", "on_verify_complete"),
    ),
    Function(f"{CONTROLLER}._activate", ("self", "speculative_num_steps"), ("_states", "apply_runtime_state")),
    Fields(
        "sglang.srt.speculative.adaptive_spec_params.AdaptiveSpeculativeParams",
        ("candidate_steps", "set_cuda_graph_bs", "get_steps_for_batch", "on_verify_complete", "cuda_graph_bs_for_step"),
    ),
)
# What carries a mode to all ranks. It is looked at in the scheduler's process, which has these modules anyway.
SGLANG_CONTROL = (
    Function(f"{RECEIVER}.recv_requests", ("self",), ("_pull_raw_reqs", "_broadcast_reqs_across_ranks")),
    Function(f"{RECEIVER}._pull_raw_reqs", ("self",)),
    Function(f"{SGLANG_SCHEDULER}.process_input_requests", ("self", "recv_reqs"), ("_request_dispatcher",)),
)


def differences(contract: Sequence[Any]) -> List[str]:
    """Return one line for each name, parameter, attribute or field that is not as the plugin needs it."""
    return [line for one in contract for line in _differs(one)]


def _differs(need: Any) -> List[str]:
    try:
        held = found(need.name)
    except Exception as error:  # noqa: BLE001 - an import may fail in any way
        return [f"{need.name} is not there ({type(error).__name__}: {str(error)[:120]})"]
    if isinstance(need, Fields):
        known = {*dir(held), *getattr(held, "__annotations__", ())}
        return [f"{need.name} has no {one}" for one in need.fields if one not in known]
    body = inspect.unwrap(held)
    try:
        parameters = inspect.signature(body).parameters
    except (TypeError, ValueError) as error:
        return [f"{need.name} tells no signature ({error})"]
    lines = [f"{need.name} takes no {one}" for one in need.parameters if one not in parameters]
    names = getattr(getattr(body, "__code__", None), "co_names", ())
    return lines + [f"{need.name} does not use {one}" for one in need.uses if one not in names]


def found(name: str) -> Any:
    """Return what a dotted name stands for: its module imported, the rest looked up."""
    words = name.split(".")
    for length in range(len(words) - 1, 0, -1):
        try:
            held: Any = importlib.import_module(".".join(words[:length]))
        except ModuleNotFoundError as error:
            if not ".".join(words[:length]).startswith(str(error.name)):
                raise
            continue
        for word in words[length:]:
            held = getattr(held, word)
        return held
    raise ModuleNotFoundError(f"no module {words[0]}")
