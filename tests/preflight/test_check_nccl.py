"""What NCCL makes of its variables: told by release, and never a reason to refuse."""

import pytest

from preflight.hosts import host_of
from vigil.preflight.command import Command
from vigil.preflight.examine import examine
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.nccl import table
from vigil.preflight.sight import Sight


def said(variables: dict[str, str], nccl: str | None = "2.27.5", ranks: int = 8, **program: object) -> list[Finding]:
    """Return what is said of variables on a host with eight GPUs."""
    words = ("python", "-m", "sglang.launch_server", "--model-path", "M", "--tp", str(ranks))
    told = {"settings": {"variables": variables}, "program": {"nccl": nccl, **program}}
    found = examine(Command(words=words, own=3, engine="sglang"), Sight(host=host_of(told, "0.5.10")))
    assert found.fatal == ()
    return [one for one in found.findings if one.code.startswith("NCCL")]


def texts(name: str, value: str, nccl: str | None = "2.27.5") -> list[str]:
    return [one.text for one in said({name: value}, nccl)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NCCL_ALGO", "Ring"), ("NCCL_ALGO", "^NVLS,NVLSTree"), ("NCCL_ALGO", "allreduce:tree;broadcast:ring"),
        ("NCCL_PROTO", "^LL128"), ("NCCL_PROTO", "LL,Simple;allreduce:^LL"), ("NCCL_P2P_LEVEL", "NVL"),
        ("NCCL_P2P_LEVEL", "3"), ("NCCL_NET_GDR_LEVEL", "PHB"), ("NCCL_DEBUG", "warn"), ("NCCL_DEBUG_SUBSYS", "^INIT,ENV"),
        ("NCCL_IB_DISABLE", "1"), ("NCCL_IB_TIMEOUT", "0x16"), ("NCCL_IB_GID_INDEX", "-1"),
        ("NCCL_SOCKET_FAMILY", "AF_INET6"), ("NCCL_IB_DISABLE", "false"), ("NCCL_IB_DISABLE", ""),
        ("NCCL_NET", "AWS Libfabric"), ("NCCL_BUFFSIZE", "$SIZE"), ("NCCL_VERSION", "2.27.5-1"), ("NCCL_BLOCKING_WAIT", "1"),
        ("NCCL_FASTRAK_IFNAME", "eth1"), ("NCCL_TIMEOUT", "7200"), ("NCCL_HOME", "/usr"), ("NCCL_NVLS_ENABLE", "0"),
        ("NCCL_DEBUG_FILE", "/tmp/nccl.%h.%p"), ("NCCL_CUMEM_ENABLE", "0"), ("NCCL_GRAPH_MIXING_SUPPORT", "0"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("nccl", ["2.27.5", None, "2.32.3"])
def test_what_nccl_takes_gives_nothing_to_say(name: str, value: str, nccl: str | None) -> None:
    assert texts(name, value, nccl) == []


def test_true_is_no_number() -> None:
    (text,) = texts("NCCL_P2P_DISABLE", "true")
    assert text == "NCCL_P2P_DISABLE=true is read as 0: NCCL wants a number; NCCL_P2P_DISABLE=1 is meant"


def test_a_unit_is_left_out() -> None:
    assert texts("NCCL_BUFFSIZE", "8M") == ["NCCL_BUFFSIZE=8M is read as 8: NCCL stops at what follows the number"]


def test_levels_are_written_in_capitals() -> None:
    (text,) = texts("NCCL_P2P_LEVEL", "nvl")
    taken = "LOC, NVL, NVB, PIX, PXB, PXN, PHB, SYS, C2C, P2C"
    assert text == f"NCCL_P2P_LEVEL=nvl is ignored without a word: NCCL knows no nvl; it takes {taken}"


def test_a_word_in_a_list_is_refused_from_2_24_on() -> None:
    (text,) = texts("NCCL_ALGO", "CollNet")
    assert text.startswith(
        "NCCL_ALGO=CollNet: NCCL knows no 'CollNet', it refuses to start with that; it takes Tree, Ring,"
    )
    assert "from 2.24 on it refuses" in texts("NCCL_ALGO", "CollNet", "2.21.5")[0]
    assert "knows no ' Tree'" in texts("NCCL_ALGO", "Ring, Tree")[0]  # NCCL takes no blanks away
    assert "knows no collective 'alltoall'" in texts("NCCL_ALGO", "alltoall:ring")[0]


def test_words_are_those_of_the_release() -> None:
    assert len(texts("NCCL_ALGO", "PAT", "2.21.5")) == 1
    assert texts("NCCL_ALGO", "PAT", "2.23.4") == []


def test_a_level_of_debugging_that_there_is_not_is_told() -> None:
    assert "NCCL knows no DEBUG; it takes VERSION, WARN, INFO, ABORT, TRACE" in texts("NCCL_DEBUG", "debug")[0]
    assert "NCCL knows no NETWORK" in texts("NCCL_DEBUG_SUBSYS", "INIT,NETWORK")[0]


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("NCCL_IB_DISABEL", "NCCL_IB_DISABLE"),
        ("NCCL_SOCKETIFNAME", "NCCL_SOCKET_IFNAME"),
        ("NCCL_SOCKET_IFNAMES", "NCCL_SOCKET_IFNAME"),
        ("NCCL_P2P_DISABLED", "NCCL_P2P_DISABLE"),
    ],
)
def test_a_name_that_is_like_another_is_a_warning(wrong: str, right: str) -> None:
    (found,) = said({wrong: "1"})
    assert (found.code, found.severity) == ("NCCL004", Severity.WARNING)
    assert found.text == f"NCCL 2.27.5 reads no {wrong}: {right} is like it"


def test_a_name_of_a_later_release_is_noted() -> None:
    (found,) = said({"NCCL_CTA_POLICY": "1"}, "2.21.5")
    assert found.severity is Severity.NOTE
    assert "of the releases in the table 2.27.7 is the first that does" in found.text


def test_one_rank_needs_no_nccl_and_rocm_has_its_own() -> None:
    assert said({"NCCL_IB_DISABLE": "true"}, ranks=1) == []
    assert said({"NCCL_IB_DISABLE": "true"}, torch={"version": "2.9.1+rocm6.4", "cuda": None, "rocm": "6.4"}) == []


def test_the_table_has_the_variables_that_the_engines_set() -> None:
    names = (
        "NCCL_NVLS_ENABLE",
        "NCCL_CUMEM_ENABLE",
        "NCCL_GRAPH_REGISTER",
        "NCCL_MIN_NCHANNELS",
        "NCCL_MNNVL_ENABLE",
        "NCCL_LAUNCH_MODE",
    )
    assert set(names) <= set(table().names(table().of("2.27.5")))
