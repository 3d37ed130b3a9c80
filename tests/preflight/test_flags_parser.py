"""The scout looks at an installed engine's parser: reads it, asks it where that is not enough, and keeps what it learnt."""

import ast
import base64
import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from vigil.preflight.seen_parser import ParserSeen
from vigil.scout import desk, parser_asked, sglang_source
from vigil.scout.parser_help import flags_of
from vigil.supervise.ahead import sight_of

PLAIN = """
import argparse
LEVELS = ["low", "high"]
class ServerArgs:
    tp_size: int = 1
    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--model-path", "--model", type=str, required=True)
        parser.add_argument("--tp-size", "--tp", type=int, default=ServerArgs.tp_size)
        parser.add_argument("--level", choices=LEVELS + ["none"])
        parser.add_argument("--trust-remote-code", action="store_true")
"""
TWICE = PLAIN + '        parser.add_argument("--tp", type=int)\n'


class Install:
    """A virtual environment with an SGLang of one file, as a wheel would have left it."""

    def __init__(self, folder: Path) -> None:
        self.python = folder / "venv/bin/python"
        self.python.parent.mkdir(parents=True)
        self.python.symlink_to(sys.executable)
        (folder / "venv/pyvenv.cfg").write_text(f"home = {Path(sys.executable).parent}\nversion = 3.11.7\n")
        minor = f"python{sys.version_info.major}.{sys.version_info.minor}"
        self.site = folder / "venv/lib" / minor / "site-packages"
        self.main = self.site / "sglang/srt/server_args.py"
        self.main.parent.mkdir(parents=True)
        for package in (self.main.parent, self.main.parent.parent):
            (package / "__init__.py").write_text("")
        self.write(PLAIN)
        info = self.site / "sglang-0.5.10.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Name: sglang\nVersion: 0.5.10\n")
        told = base64.urlsafe_b64encode(hashlib.sha256(PLAIN.encode()).digest()).decode().rstrip("=")
        (info / "RECORD").write_text(f"sglang/srt/server_args.py,sha256={told},{len(PLAIN)}\n")

    def write(self, text: str) -> None:
        self.main.write_text(text)

    def see(self, *, deep: bool = False) -> ParserSeen:
        words = [str(self.python), "-m", "sglang.launch_server", "--model-path", "m"]
        asked = {"engine": "sglang", "words": words, "cwd": str(self.site.parent), "deep": deep}
        found = sight_of(desk.answer(desk.question_of(asked), ["parser"]))
        assert found.troubles == ()
        assert found.parser is not None
        return found.parser


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("PYTHONPATH", "PYTHONHOME"):
        monkeypatch.delenv(name, raising=False)
    return Install(tmp_path)


def names(seen: ParserSeen) -> set[str]:
    return {name for flag in seen.flags for name in flag.names}


def test_an_untouched_install_is_read_and_not_run(install: Install) -> None:
    seen = install.see()

    assert (seen.how, seen.version, seen.interpreter) == ("read", "0.5.10", str(install.python))
    assert names(seen) == {"--model-path", "--model", "--tp-size", "--tp", "--level", "--trust-remote-code"}
    told = {flag.key: flag for flag in seen.flags}
    assert told["--level"].choices == ("low", "high", "none")
    assert (told["--tp-size"].type, told["--tp-size"].default) == ("int", "1")
    assert told["--trust-remote-code"].nargs == "0"
    assert told["--model-path"].required


def test_what_was_learnt_is_kept_until_a_file_changes(install: Install) -> None:
    assert not install.see().kept
    assert install.see().kept
    install.write(PLAIN.replace("--level", "--height"))

    seen = install.see()

    assert not seen.kept
    assert "--height" in names(seen)


def test_an_edited_parser_is_asked_itself(install: Install) -> None:
    install.write(
        PLAIN + '        for word in ("a", "b"):\n            parser.add_argument(f"--patch-{word}", type=int)\n'
    )

    seen = install.see()

    assert seen.how == "asked"
    assert seen.edited == ("srt/server_args.py",)
    assert {"--patch-a", "--patch-b", "-h"} < names(seen)


def test_a_deep_look_asks_an_untouched_parser_too(install: Install) -> None:
    assert install.see().how == "read"
    assert install.see(deep=True).how == "asked"
    assert install.see().how == "asked"  # it is kept, and better than a reading


def test_reading_and_asking_come_to_the_same(install: Install) -> None:
    read, asked = install.see(), install.see(deep=True)

    def plain(seen: ParserSeen) -> list[Any]:
        return sorted(
            (flag.names, flag.nargs, flag.type, flag.choices, flag.required)
            for flag in seen.flags
            if "-h" not in flag.names
        )

    assert plain(read) == plain(asked)


def test_a_flag_that_was_added_twice_is_told_with_its_line(install: Install) -> None:
    install.write(TWICE)

    broken = install.see().broken

    assert broken is not None
    assert (broken.kind, broken.file, broken.edited) == ("ArgumentError", str(install.main), True)
    assert broken.line == len(TWICE.splitlines())
    assert "--tp" in broken.text


def test_an_argument_within_another_ones_definition_is_told_with_its_line(install: Install) -> None:
    install.write(PLAIN.replace("type=str, required=True)", 'type=str,\n        parser.add_argument("--patch"))'))

    seen = install.see()

    assert seen.broken is not None
    assert (seen.broken.kind, seen.broken.file, seen.broken.edited) == ("SyntaxError", str(install.main), True)
    assert seen.broken.line in {8, 9}
    assert seen.flags == ()


def test_a_parser_that_dies_of_something_else_says_where(install: Install) -> None:
    install.write(PLAIN + "        parser.add_argument(NAME)\n")

    broken = install.see().broken

    assert broken is not None
    assert (broken.kind, broken.edited, broken.line) == ("NameError", True, len(PLAIN.splitlines()) + 1)


def test_a_parser_that_hangs_is_left_after_a_while_and_its_source_read(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parser_asked, "PATIENCE_S", 1.0)
    install.write(PLAIN + "import time, subprocess\nsubprocess.Popen(['sleep', '60'])\ntime.sleep(60)\n")

    seen = install.see()

    assert (seen.how, seen.broken) == ("read", None)
    assert seen.trouble is not None
    assert "not made within" in seen.trouble
    assert "--tp" in names(seen)


def test_a_package_that_forks_and_keeps_our_pipe_is_not_waited_for(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parser_asked, "PATIENCE_S", 15.0)
    child = "if os.fork() == 0:\n    os.setsid()\n    time.sleep(30)\n    os._exit(0)\n"
    install.write("import os, time\n" + child + PLAIN + "        parser.add_argument(*['--more'])\n")

    assert install.see().how == "asked"  # "read" where the wait for the pipe's end ran out


def test_what_was_kept_and_is_no_list_of_flags_is_not_believed(install: Install) -> None:
    install.see()
    (kept,) = (Path(os.environ["XDG_STATE_HOME"]) / "vigil/parsers").glob("*.json")
    told = json.loads(kept.read_text())
    kept.write_text(json.dumps({**told, "flags": 5}))

    assert "--tp" in names(install.see())


def test_a_parser_that_asks_prints_and_leaves_does_not_hold_us_up(install: Install) -> None:
    install.write(PLAIN + 'print("x" * 1_000_000)\ntry:\n    input("Really? ")\nexcept EOFError:\n    pass\n')
    assert install.see().how == "asked"
    install.write(PLAIN + "import os\nos._exit(3)\n")

    seen = install.see()

    assert seen.how == "read"
    assert "ended with" in (seen.trouble or "")


def test_a_parser_sees_no_gpu_and_leaves_no_compiled_file(install: Install) -> None:
    install.write(
        PLAIN
        + 'import os\nif os.environ["CUDA_VISIBLE_DEVICES"] == "" and os.environ["HF_HUB_OFFLINE"] == "1":\n'
        + '    LEVELS.append("blind")\n'
    )

    told = {flag.key: flag for flag in install.see().flags}

    assert told["--level"].choices == ("low", "high", "blind", "none")
    assert not list(install.site.rglob("__pycache__"))


def test_an_interpreter_without_the_engine_is_told(install: Install) -> None:
    install.main.unlink()

    seen = install.see()

    assert seen.how is None
    assert seen.trouble == f"{install.python} has no sglang"
    assert not seen.foreign


def test_a_kept_answer_that_is_broken_or_hostile_is_read_again(install: Install, tmp_path: Path) -> None:
    install.see()
    (kept,) = (tmp_path / "state/vigil/parsers").iterdir()
    for text in ("{", "[]", "[" * 100_000, '{"files": {"/dev/zero": "x"}}', '{"files": 3}'):
        kept.write_text(text)
        assert install.see().how == "read"
    assert oct(kept.stat().st_mode & 0o777) == oct(0o600)


def test_a_checkout_is_found_where_its_install_points(install: Install, tmp_path: Path) -> None:
    target = tmp_path / "work/python/sglang"
    target.parent.mkdir(parents=True)
    (install.site / "sglang").rename(target)
    (install.site / "sglang-0.5.10.dist-info/direct_url.json").write_text(f'{{"url": "file://{tmp_path}/work"}}')

    assert install.see().how == "read"


def test_a_container_is_not_looked_into(install: Install) -> None:
    asked = {"engine": "sglang", "words": ["docker", "run", "lmsysorg/sglang", "sglang", "serve"], "cwd": "/"}

    found = sight_of(desk.answer(desk.question_of(asked), ["parser"])).parser

    assert found is not None
    assert found.trouble == "it runs in a container, or on another host"


def test_a_binary_that_tells_no_flags_is_no_help(install: Install, tmp_path: Path) -> None:
    binary = tmp_path / "llama-server"
    binary.write_bytes(Path("/bin/sh").read_bytes())
    binary.chmod(0o755)
    words = [str(binary)]

    found = sight_of(
        desk.answer(desk.question_of({"engine": "llamacpp", "words": words, "cwd": "/"}), ["parser"])
    ).parser

    assert found is not None
    assert "told no flags" in (found.trouble or "")


def test_a_script_named_llama_server_is_not_run(install: Install, tmp_path: Path) -> None:
    script = tmp_path / "llama-server"
    script.write_text(f"#!{sys.executable}\nopen({str(tmp_path / 'ran')!r}, 'w')\n")
    script.chmod(0o755)

    found = sight_of(
        desk.answer(desk.question_of({"engine": "llamacpp", "words": [str(script)], "cwd": "/"}), ["parser"])
    ).parser

    assert found is not None
    assert "was not run" in (found.trouble or "")
    assert found.foreign
    assert not (tmp_path / "ran").exists()


HELP = """load_backend: loaded CPU backend
----- common params -----

-h,    --help, --usage                  print usage and exit
-c,    --ctx-size N                     size of the prompt context (default: 0, 0 = loaded from model)
                                        (env: LLAMA_ARG_CTX_SIZE)
-sm,   --split-mode {none,layer,row}    how to split the model across multiple GPUs, one of:
                                        - none: use one GPU only
-ot,   --override-tensor <tensor name pattern>=<buffer type>,...
                                        override tensor buffer type
--control-vector-layer-range START END
                                        layer range to apply the control vector(s) to
-dt,   --defrag-thold N                 KV cache defragmentation threshold (DEPRECATED)
--mmap, --no-mmap                       whether to memory-map the model
--draft, --draft-max N                  the argument has been removed. use --spec-draft-n-max or
                                        --spec-ngram-mod-n-max
                                        (env: LLAMA_ARG_DRAFT_MAX)
"""


def test_the_help_of_llama_server_is_read() -> None:
    told = {flag["names"][-1]: flag for flag in flags_of(HELP)}

    assert {name: flag["nargs"] for name, flag in told.items()} == {
        "--usage": "0",
        "--ctx-size": "1",
        "--split-mode": "1",
        "--override-tensor": "1",
        "--control-vector-layer-range": "2",
        "--defrag-thold": "1",
        "--no-mmap": "0",
        "--draft-max": "1",
    }
    assert told["--split-mode"]["choices"] == ["none", "layer", "row"]
    assert told["--draft-max"]["instead"] == "use --spec-draft-n-max or --spec-ngram-mod-n-max"
    assert (told["--draft-max"]["dead"], told["--defrag-thold"]["instead"]) == (True, "")


def test_choices_are_read_through_variables_functions_and_tables(tmp_path: Path) -> None:
    install = Install(tmp_path)
    install.write(
        """
from sglang.srt.function_call.function_call_parser import FunctionCallParser
def _names():
    if loaded():
        return list(loaded().NAMES)
    return list(FunctionCallParser.Known)
class ServerArgs:
    @staticmethod
    def add_cli_args(parser):
        names = _names()
        parser.add_argument("--parser", choices=["auto"] + names)
        changed = list(FunctionCallParser.Known)
        changed.append(other())
        parser.add_argument("--changed", choices=changed)
        twice = ["a"]
        twice = ["b"]
        parser.add_argument("--twice", choices=twice)
"""
    )
    table = install.main.parent / "function_call/function_call_parser.py"
    table.parent.mkdir()
    table.write_text('class FunctionCallParser:\n    Known: Dict[str, type] = {"one": One, "two": Two}\n')
    files = {"srt/server_args.py": install.main, "srt/function_call/function_call_parser.py": table}

    flags = sglang_source.read({path: ast.parse(file.read_text()) for path, file in files.items()}).flags

    assert [(one["names"][0], one.get("choices")) for one in flags] == [
        ("--parser", ["auto", "one", "two"]),
        ("--changed", None),
        ("--twice", None),
    ]
