import pytest
from hypothesis import given
from hypothesis import strategies as st

from vigil.diagnosis import fingerprint

PREFIXES = st.sampled_from([
    "{body}",
    "(EngineCore pid={pid}) ERROR 11-30 07:3{digit}:24 [core.py:1510] {body}",
    "(Worker_TP{digit} pid={pid}) ERROR 05-03 00:17:3{digit} [multiproc_executor.py:870] {body}",
    "[2026-11-30 07:52:0{digit} TP{digit}] {body}",
    "0.00.12{digit}.413 E {body}",
    "\x1b[31m2026-11-30 07:52:0{digit} - {body}\x1b[0m",
])  # fmt: skip
MESSAGES = st.sampled_from([
    "RuntimeError: rank died (pid={pid}) at 0x{hexa} while reading {folder}/model.safetensors",
    "OSError: cannot bind ('127.0.0.1', {port}): address already in use",
    "torch.OutOfMemoryError: Tried to allocate {size}. Process {pid} has {size} memory in use",
    "ValueError: request {uuid} took {seconds}s on worker TP{digit}",
    "kernel launch failed in {folder}/csrc/ops.cu:{pid} after {size}",
])  # fmt: skip
FOLDERS = st.lists(st.text("abcdefghij_", min_size=1, max_size=8), min_size=1, max_size=4).map(
    lambda parts: "/" + "/".join(parts)
)
SIZES = st.tuples(st.integers(1, 9999), st.integers(0, 99), st.sampled_from(["MiB", "GiB", "KiB"]))
LIVES = st.fixed_dictionaries({
    "pid": st.integers(2, 4_000_000),
    "digit": st.integers(0, 9),
    "port": st.integers(1, 65535),
    "hexa": st.integers(1, 2**64 - 1).map("{:x}".format),
    "size": SIZES.map(lambda t: f"{t[0]}.{t[1]:02} {t[2]}"),
    "seconds": st.floats(0.01, 9999).map("{:.2f}".format),
    "uuid": st.uuids().map(str),
    "folder": FOLDERS,
})  # fmt: skip
WORDS = st.lists(
    st.from_regex(r"[a-z]{3,12}", fullmatch=True).filter(lambda w: not w.startswith("tmp")), min_size=1, max_size=8
)


def words_of(life: dict[str, object], prefix: str, message: str) -> str:
    return prefix.format(body=message.format(**life), **{k: life[k] for k in ("pid", "digit")})


@given(MESSAGES, PREFIXES, PREFIXES, LIVES, LIVES)
def test_fingerprint_is_the_same_for_the_same_failure_in_two_lives(
    message: str, prefix: str, other_prefix: str, life: dict[str, object], other: dict[str, object]
) -> None:
    assert fingerprint(words_of(life, prefix, message)) == fingerprint(words_of(other, other_prefix, message))


@given(WORDS, WORDS, LIVES)
def test_fingerprint_differs_where_the_words_differ(one: list[str], two: list[str], life: dict[str, object]) -> None:
    texts = [f"RuntimeError: {' '.join(words)} (pid={life['pid']})" for words in (one, two)]
    assert (fingerprint(texts[0]) == fingerprint(texts[1])) == (one == two)


@given(st.text(max_size=6000))
def test_fingerprint_of_anything_is_short_and_settled(text: str) -> None:
    once = fingerprint(text)
    assert len(once) <= 200
    assert fingerprint(text) == once


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("cannot open '/models/target.gguf'", "cannot open '/models/draft.gguf'"),
        ("OSError: [Errno 13] x", "OSError: [Errno 28] x"),
        ("Subprocess x (pid=1) crashed with exit code -9.", "Subprocess x (pid=1) crashed with exit code -11."),
        ("unrecognized arguments: --num-speculative-tokens 16", "unrecognized arguments: --speculative-num-tokens 16"),
        ("sm_120 is not compatible", "sm_90 is not compatible"),
        ("killed by SIGSEGV", "killed by SIGKILL"),
    ],
)
def test_fingerprint_keeps_what_names_the_failure(one: str, two: str) -> None:
    assert fingerprint(one) != fingerprint(two)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (
            "init file:///tmp/vllm_dist_8369e78ac96948739fa6f823276509c3",
            "init file:///tmp/vllm_dist_5b99aa789c9445adbaa05ed1cd16017c",
        ),
        ("segment /dev/shm/nccl-lNPZ0f (size 7340384)", "segment /dev/shm/nccl-8Yq2aK (size 9637892)"),
        (
            "no file /root/hub/models--q/snapshots/0a1b2c3d4e/config.json",
            "no file /mnt/hub/models--q/snapshots/99ffee0011/config.json",
        ),
        (
            "ZMQError: Address already in use (addr='tcp://127.0.0.1:30016')",
            "ZMQError: Address already in use (addr='tcp://192.0.2.12:41021')",
        ),
        ("loading model-00003-of-00064.safetensors", "loading model-00017-of-00064.safetensors"),
        (
            "[rank5]:[E1017 06:10:03.220188821 x.cpp:607] [Rank 5] Watchdog",
            "[rank7]:[E1018 09:11:04.1 x.cpp:607] [Rank 7] Watchdog",
        ),
        (
            "/src/llama-context.cpp:1310: GGML_ASSERT(x) failed",
            "/build/src/llama-context.cpp:1299: GGML_ASSERT(x) failed",
        ),
    ],
)
def test_fingerprint_forgets_what_changes_from_life_to_life(one: str, two: str) -> None:
    assert fingerprint(one) == fingerprint(two)
