"""Which process of a tree is the server."""

import pytest

from vigil.observer.mains import Choice, Process, choose_main, holds_sign, name_process

SIGNS = ("sglang.launch_server", "sglang serve", "vllm serve")


def tree(*rows: tuple[int, int, str]) -> dict[int, Process]:
    """Processes from (pid, parent, command line); the first word names the program."""
    made = {}
    for pid, ppid, line in rows:
        argv = tuple(line.split("|")) if "|" in line else tuple(line.split())
        made[pid] = Process(pid, ppid, pid, argv, name_process(argv[0][:15], "/usr/bin/" + argv[0], argv))
    return made


def main(*rows: tuple[int, int, str]) -> Choice | None:
    return choose_main(rows[0][0], tree(*rows), SIGNS)


def test_main_is_the_root_where_it_is_no_wrapper() -> None:
    assert main((1, 0, "python train.py"), (2, 1, "python worker.py")) == Choice(1, sure=False)


def test_main_is_below_wrappers_and_not_a_helper() -> None:
    rows = (
        (1, 0, "tini -- bash"),
        (2, 1, "bash run.sh"),
        (3, 2, "tee log"),
        (4, 2, "timeout 9 ./server"),
        (5, 4, "./server"),
    )
    assert main(*rows) == Choice(5, sure=False)


def test_main_is_not_known_while_a_wrapper_has_only_helpers() -> None:
    assert main((1, 0, "bash run.sh"), (2, 1, "sleep 5"), (3, 1, "bash run.sh")) is None


def test_main_is_the_process_with_the_engines_own_command() -> None:
    rows = (
        (1, 0, "python supervise.py"),
        (2, 1, "python -m sglang.launch_server --tp 8"),
        (3, 2, "sglang::scheduler_TP0"),
    )
    assert main(*rows) == Choice(2, sure=True)


def test_main_is_the_topmost_engine_when_it_forks() -> None:
    assert main(
        (1, 0, "sh -c x"), (2, 1, "python /opt/bin/vllm serve m"), (3, 2, "python /opt/bin/vllm serve m")
    ) == Choice(2, sure=True)


def test_text_of_a_shell_is_not_the_engines_command() -> None:
    assert main((1, 0, "sh|-c|vllm serve m"), (2, 1, "sleep 1")) is None
    assert (
        main(
            (1, 0, "timeout 900 vllm serve m"),
        )
        is None
    )


def test_command_for_another_place_is_not_the_engine() -> None:
    assert main((1, 0, "ssh gpu1 vllm serve m")) == Choice(1, sure=False)


def test_orphan_of_an_earlier_main_is_not_the_next_one() -> None:
    processes = tree(
        (1, 0, "sh loop.sh"), (5, 1, "python -m sglang.launch_server"), (7, 1, "python -m sglang.launch_server")
    )
    processes[5] = processes[5]._replace(retired=True)
    assert choose_main(1, processes, SIGNS) == Choice(7, sure=True)


def test_busybox_is_what_it_is_called() -> None:
    assert name_process("busybox", "/bin/busybox", ("sleep", "5")) == {"sleep"}
    assert name_process("busybox", "/bin/busybox", ("/bin/busybox", "sh", "-c", "x")) == {"sh"}


@pytest.mark.parametrize(
    ("line", "held"),
    [
        ("python -m sglang.launch_server --port 1", True),
        ("/usr/bin/python3 /usr/local/bin/vllm serve meta/llama", True),
        ("vllm bench serve", True),
        ("vllm --help", False),
        ("serve vllm", False),
        ("python -m sglang.launch_server_extra", False),
    ],
)
def test_sign_is_words_in_order(line: str, held: bool) -> None:  # noqa: FBT001
    assert holds_sign(line.split(), SIGNS) is held


def test_parent_that_is_its_own_ancestor_ends_the_search() -> None:
    rows = ((1, 2, "bash a"), (2, 1, "bash b"), (3, 3, "vllm serve m"))
    assert main(*rows) == Choice(3, sure=True)
    assert choose_main(1, tree(*rows[:2]), SIGNS) is None
