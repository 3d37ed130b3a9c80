"""A corrected command is the user's own, with only what was wrong changed: what a shell reads stays in its quotes."""

import shlex

import pytest

from vigil.engines.commandline import flatten
from vigil.engines.rewritten import rewritten


def put_right(command: str, wrong: tuple[str, ...], right: tuple[str, ...]) -> str | None:
    """Return the command with the words `wrong`, as they are behind all shells, replaced."""
    argv = tuple(shlex.split(command))
    words = flatten(argv)
    at = next(at for at in range(len(words)) if words[at : at + len(wrong)] == wrong)
    found = rewritten(argv, words, (*words[:at], *right, *words[at + len(wrong) :]))
    return None if found is None else shlex.join(found)


@pytest.mark.parametrize(
    ("command", "wrong", "right", "expected"),
    [
        ("vllm serve m --bad 1", "--bad", "--good", "vllm serve m --good 1"),
        ("bash -c 'vllm serve m --bad 1 2>&1 | tee \"a b\"'", "--bad", "--good", '--good 1 2>&1 | tee "a b"\''),
        ("bash -lc 'source x; A=0 exec vllm serve \"m\" --bad $N'", "--bad", "--good", 'vllm serve "m" --good $N'),
        ("sh -c 'vllm serve m --bad=$N --x'", "--bad=$N", "--good=$N", 'm "--good=$N" --x'),
        ("sh -c 'vllm serve m --bad \\\n  --x 1'", "--bad", "", "m \\\n  --x 1'"),
        ("sh -c 'vllm serve m'", "m", "m --tp 2", "sh -c 'vllm serve m --tp 2'"),
        ("ssh gpu \"bash -c 'vllm serve m --bad 1'\"", "--bad", "--good", "vllm serve m --good 1"),
        ("ssh gpu 'cd /srv && nohup vllm serve m --bad &'", "--bad", "", "ssh gpu 'cd /srv && nohup vllm serve m &'"),
        ("sbatch -N1 --wrap 'vllm serve m --bad 1'", "--bad", "--good", "sbatch -N1 --wrap 'vllm serve m --good 1'"),
        (
            "sbatch -N1 '--wrap=vllm serve m --bad 1' -o x",
            "--bad",
            "--good",
            "sbatch -N1 '--wrap=vllm serve m --good 1' -o x",
        ),
    ],
)
def test_a_correction_changes_the_words_and_leaves_the_rest(
    command: str, wrong: str, right: str, expected: str
) -> None:
    found = put_right(command, tuple(wrong.split()), tuple(right.split()))

    assert found is not None
    assert expected in found


def test_a_correction_that_cannot_be_put_back_is_none() -> None:
    argv = ("bash", "-c", "vllm serve m --bad 'open")  # a quote that is not closed: the shell would refuse it

    words = flatten(argv)

    assert rewritten(argv, words, (*words[:-1], "shut")) is None


def test_a_value_that_a_shell_would_read_is_quoted() -> None:
    found = put_right("sh -c 'vllm serve m --config {a: 1}'", ("{a:", "1}"), ('{"a": "$HOME it\'s"}',))

    assert found is not None
    assert shlex.split(shlex.split(found)[2])[-1] == '{"a": "$HOME it\'s"}'
