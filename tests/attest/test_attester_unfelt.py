"""What a program must not feel of the attester in it: its threads, signals, sockets, variables, interpreters and heaps."""

import hashlib
import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from children import Nursery, until

from vigil.observer.attested import Order, look
from vigil.observer.redact import Redactor

IMPORTED = "import engine\n"
PYTHONS = ("3.9", "3.10", "3.11", "3.12", "3.13")


@pytest.fixture(autouse=True)
def _engine(nursery: Nursery) -> None:
    nursery.module("engine/__init__.py", "class Foo: pass\n")


def said(child: "subprocess.Popen[str]", word: str = "") -> str:
    """Let a child go on, and return the next line that it says."""
    assert child.stdin
    assert child.stdout
    if word:
        child.stdin.write(word + "\n")
        child.stdin.flush()
    return child.stdout.readline().strip()


def test_program_whose_sockets_all_have_a_timeout_is_heard_after_it(nursery: Nursery) -> None:
    nursery.start("import socket, time\nsocket.setdefaulttimeout(0.05)\nimport engine\ntime.sleep(0.3)\n", of="engine")

    assert [one.error for one in nursery.answers(1)] == [""]


def test_threads_that_are_greenlets_do_not_run_our_loop(nursery: Nursery) -> None:
    """As gevent does: what is started as a thread runs in the one thread that there is, and would hold it for ever."""
    code = (
        "import _thread\n"
        "def spawn(function, arguments):\n    function(*arguments)\n"
        "_thread.start_new_thread = spawn\nprint('ready', flush=True)\nimport engine\nprint('imported', flush=True)\n"
    )
    child = nursery.start(code, of="engine")

    assert select.select([child.stdout], [], [], 20)[0]
    assert len(nursery.answers(1)) == 1


def test_our_thread_takes_no_signal_of_the_process(nursery: Nursery) -> None:
    child = nursery.start(IMPORTED, of="engine")
    nursery.answers(1)
    (ours,) = [one for one in Path(f"/proc/{child.pid}/task").iterdir() if one.name != str(child.pid)]
    blocked = next(line for line in (ours / "status").read_text().splitlines() if line.startswith("SigBlk"))
    mask = int(blocked.split()[1], 16)

    assert mask & 1 << (signal.SIGTERM - 1)
    assert not mask & 1 << (signal.SIGSEGV - 1)


def test_program_that_closed_all_its_files_is_asked_at_a_new_socket(nursery: Nursery) -> None:
    nursery.start(f"{IMPORTED}import os, time\ntime.sleep(0.3)\nos.closerange(3, 100)\n", of="engine")
    nursery.answers(1)

    assert [one.error for one in nursery.answers(1)] == [""]


def test_subinterpreter_that_loads_an_engine_can_end(nursery: Nursery) -> None:
    """A thread of ours in it would abort the process at its end; the main interpreter answers as ever."""
    code = (
        "import sys, engine\n"
        "try:\n    import _xxsubinterpreters as inner\nexcept ImportError:\n    import _interpreters as inner\n"
        "one = inner.create() if sys.version_info >= (3, 13) else inner.create(isolated=False)\n"
        "inner.run_string(one, 'import engine, time; time.sleep(0.2)')\n"
        "print('ready', flush=True)\nsys.stdin.readline()\ninner.destroy(one)\nprint('ended', flush=True)\n"
    )
    child = nursery.start(code, of="engine")
    (answer,) = nursery.answers(1, packages=["engine"])

    assert [name for name, *_ in answer.told["modules"]] == ["engine"]
    assert said(child, "go") == "ended"


@pytest.mark.parametrize("hidden", ["", "print('hidden')\n"])
def test_subinterpreter_begins_as_it_does_without_us(nursery: Nursery, hidden: str) -> None:
    behind = (nursery.module("hidden/sitecustomize.py", hidden).parent,) if hidden else ()
    code = (
        "import sys\n"
        "try:\n    import _xxsubinterpreters as inner\nexcept ImportError:\n    import _interpreters as inner\n"
        "one = inner.create()\ninner.run_string(one, 'import engine')\ninner.destroy(one)\n"
    )
    done = nursery.run(code, of="engine", behind=behind)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == 2 * ("hidden\n" if hidden else "")


def python_of(version: str) -> str:
    found = sorted(Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python"))
    python = str(found[-1]) if found else shutil.which(f"python{version}")
    if python is None:
        pytest.skip(f"no Python {version} here")
    return python


@pytest.mark.parametrize("version", PYTHONS)
def test_variables_that_a_function_took_as_a_dictionary_stay_in_it(nursery: Nursery, version: str) -> None:
    code = (
        "import engine, sys\n"
        "def serve(a, b):\n    mine = locals()\n    a = 9\n    foo = [engine.Foo()]\n    print('ready', flush=True)\n"
        "    sys.stdin.readline()\n    print(sorted(mine.items()), flush=True)\n    sys.stdin.read()\nserve(1, 2)\n"
    )
    child = nursery.start(code, python=python_of(version), of="engine")
    nursery.answers(1, arguments=["Nowhere"], classes=["Nowhere", "Foo"])

    assert said(child, "go") == "[('a', 1), ('b', 2)]"


@pytest.mark.parametrize("version", PYTHONS)
@pytest.mark.parametrize("hook", ["settrace", "setprofile"])
def test_function_under_a_tracer_keeps_its_variables(nursery: Nursery, version: str, hook: str) -> None:
    """To Python 3.12 what a tracer left in `f_locals` is written back into the function when it returns."""
    code = (
        "import engine, sys\n"
        "def inner(callback):\n    a = 1\n    b = 2\n    callback(a)\n    return a + b\n"
        "def profiled(frame, event, argument):\n"
        "    if frame.f_code.co_name == 'inner' and event == 'c_call' and 'asked' not in seen:\n"
        "        seen.append('asked')\n        print('ready', flush=True)\n        sys.stdin.readline()\n"
        "def line(frame, event, argument):\n"
        "    if frame.f_code.co_name == 'inner' and event == 'line' and frame.f_lineno > first + 2 and 'asked' not in seen:\n"
        "        seen.append('asked')\n        print('ready', flush=True)\n        sys.stdin.readline()\n"
        "    return line\n"
        "seen = []\nfirst = inner.__code__.co_firstlineno\n"
        f"sys.{hook}({'line' if hook == 'settrace' else 'profiled'})\n"
        "try:\n    told = inner(abs)\nexcept UnboundLocalError as error:\n    told = error\n"
        f"sys.{hook}(None)\nprint(told, flush=True)\n"
    )
    child = nursery.start(code, python=python_of(version), of="engine")
    nursery.answers(1, arguments=["Nowhere"])

    assert said(child, "go") == "3"


def test_batch_that_a_function_let_go_is_not_kept_by_what_we_saw(nursery: Nursery) -> None:
    code = (
        "import engine, sys, weakref\n"
        "def serve():\n    batch = engine.Foo()\n    seen = weakref.ref(batch)\n    print('ready', flush=True)\n"
        "    sys.stdin.readline()\n    batch = None\n    print(seen(), flush=True)\n    sys.stdin.read()\nserve()\n"
    )
    child = nursery.start(code, of="engine")
    nursery.answers(1, classes=["Foo"])

    assert said(child, "go") == "None"


def test_heap_that_is_too_large_to_be_listed_is_said_to_be_so(nursery: Nursery) -> None:
    text = (nursery.home / "finding.py").read_text().replace("MOST_BLOCKS = 8000000", "MOST_BLOCKS = 10")
    (nursery.home / "finding.py").write_text(text)
    nursery.start(IMPORTED, of="engine")
    (answer,) = nursery.answers(1, classes=["Foo"])

    assert answer.told["classes"]["Foo"] == {"defined": True, "alive": 0, "frozen": True}


@pytest.mark.timeout(120)
def test_large_list_on_a_stack_is_not_walked_whole(nursery: Nursery) -> None:
    code = f"{IMPORTED}import gc\ngc.disable()\ndef serve():\n    heap = [[] for _ in range(3000000)]\n    wait()\n"
    wait = "def wait():\n    print('ready', flush=True)\n    sys.stdin.read()\nimport sys\nserve()\n"
    nursery.start(code + wait, of="engine")
    (answer,) = until(lambda: nursery.ask(10.0, arguments=["Nowhere"]), "an answer")

    assert answer.told["took_s"] < 1.5


# --- objects that answer with code of their own

TRAPS = """
import sys
def spring(*_): open('sprung', 'w')
class Meta(type):
    def __eq__(self, other): spring()
    @property
    def __mro__(self): spring()
    def __getattribute__(self, name): spring(); return type.__getattribute__(self, name)
class Odd(metaclass=Meta): pass
class Proxy:
    @property
    def __class__(self): spring(); return type
    @property
    def __dict__(self): spring(); return {}
    def __getattr__(self, name): spring()
class Text(str):
    def __hash__(self): spring(); return 1
    def __eq__(self, other): spring()
    def __str__(self): spring()
Lazy = Proxy()
sys.modules['lazy'] = Proxy()
sys.modules['odd'] = type(sys)('odd')
sys.modules['odd'].__dict__['__file__'] = Text('/x')
sys.modules['none'] = None
class Tensor:
    __str__ = __repr__ = spring
Tensor.__module__ = 'torch'
class Args:
    def __init__(self):
        self.odd, self.proxy, self.text, self.tensor, self.big = Odd(), Proxy(), Text('x'), Tensor(), 10 ** 5000
kept = Args()
"""


def test_hostile_objects_classes_and_modules_are_looked_at_and_run_nothing(nursery: Nursery) -> None:
    nursery.module("engine/__init__.py", TRAPS + "class Foo: pass\n")
    code = "import engine, os, sys\ndef serve():\n    held = [engine.Odd(), engine.Lazy, engine.Foo()]\n    wait()\n"
    wait = "def wait():\n    print('ready', flush=True)\n    sys.stdin.read()\nserve()\n"
    nursery.start(code + wait, of="engine")
    (nursery.folder / "sprung").unlink(missing_ok=True)  # what the module did to itself when it was made
    (answer,) = nursery.answers(
        1,
        packages=["engine", "lazy", "odd"],
        files=["/x"],
        classes=["Foo", "Lazy", "Odd"],
        arguments=["Args", "X"],
        roots=["engine:kept"],
    )
    alive = {name: one["alive"] for name, one in answer.told["classes"].items()}

    assert not (nursery.folder / "sprung").exists()
    assert "trouble" not in answer.told
    assert alive == {"Foo": 1, "Lazy": 0, "Odd": 1}
    assert answer.told["arguments"]["values"] == {
        "odd": "<Odd>",
        "proxy": "<Proxy>",
        "text": "<Text>",
        "tensor": "<Tensor>",
        "big": "<int>",
    }


def test_file_of_the_program_that_is_called_json_is_not_run_for_us(nursery: Nursery) -> None:
    nursery.module("json.py", "open('sprung', 'w')\n")
    child = nursery.start(IMPORTED, of="engine")
    until(lambda: [one.error for one in nursery.ask(1.0)] == ["gone"], "its silence")

    assert not (nursery.folder / "sprung").exists()
    assert child.poll() is None


# --- what is found


@pytest.mark.parametrize(
    "name", ["LLM", "engine.LLM", "engine.inner.LLM", "Inner", "LLM.Inner", "engine.inner.LLM.Inner", "Local", "Alias"]
)
def test_class_is_found_by_each_of_its_names(nursery: Nursery, name: str) -> None:
    nursery.module("engine/inner.py", "class LLM:\n    class Inner: pass\n")
    nursery.module("engine/__init__.py", "from engine.inner import LLM\nAlias = LLM\n")
    code = "import engine\na, b = engine.LLM(), engine.LLM.Inner()\n"
    code += "def f():\n    class Local: pass\n    return Local()\nc = f()\n"
    nursery.start(code, of="engine")
    (answer,) = nursery.answers(1, classes=[name])

    assert answer.told["classes"][name] == {"defined": True, "alive": 1, "frozen": False}


def test_instances_that_the_collector_does_not_know_may_be_there(nursery: Nursery) -> None:
    nursery.module("engine/__init__.py", "import msgspec\nclass Request(msgspec.Struct, gc=False): pass\n")
    nursery.start(IMPORTED, of="engine")
    (answer,) = nursery.answers(1, classes=["Request"])

    assert answer.told["classes"]["Request"] == {"defined": True, "alive": 0, "frozen": True}


def test_arguments_are_told_whatever_kind_of_record_they_are(nursery: Nursery) -> None:
    """SGLang 0.5.23 has a `msgspec.Struct` with a `__dict__` beside it, older ones a dataclass; vLLM dataclasses in one."""
    nursery.module(
        "engine/__init__.py",
        "import dataclasses, msgspec\n"
        "class Struct(msgspec.Struct, dict=True):\n    port: int = 1\n    name: str = 'a'\n"
        "@dataclasses.dataclass\nclass Outer:\n    struct: Struct\n    size: int = 2\n"
        "kept = Struct(port=7)\nkept.noted = True\nkept._resolved_overrides = [('step', {'name': 'b'})]\n"
        "outer = Outer(kept)\n",
    )
    nursery.start(IMPORTED, of="engine")
    told = [
        nursery.answers(1, arguments=["Struct", "Outer"], roots=[root])[0].told["arguments"]["values"]
        for root in ("engine:kept", "engine:outer")
    ]

    assert told == [{"port": 7, "name": "b"}, {"struct.port": 7, "struct.name": "b", "size": 2}]


def test_struct_whose_fields_hold_nothing_may_be_there_unlisted(nursery: Nursery) -> None:
    nursery.module("engine/__init__.py", "import msgspec\nclass Request(msgspec.Struct):\n    n: int = 1\n")
    nursery.start(IMPORTED, of="engine")
    (answer,) = nursery.answers(1, classes=["Request"])

    assert answer.told["classes"]["Request"]["frozen"] is True


def test_file_that_was_read_and_is_no_module_is_told_without_a_name(nursery: Nursery) -> None:
    failed = nursery.module("engine/failed.py", "1/0\n")
    run = nursery.module("plugin.py", "x = 1\n")
    code = (
        "import engine, importlib.util\ntry:\n    import engine.failed\nexcept ZeroDivisionError:\n    pass\n"
        f"spec = importlib.util.spec_from_file_location('plugin', {str(run)!r})\n"
        "module = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(module)\n"
    )
    nursery.start(code, of="engine")
    (answer,) = nursery.answers(1, files=[str(run)])
    named: dict[Any, Any] = {file: name for name, file, *_ in answer.told["modules"]}

    assert (named[str(failed)], named[str(run)]) == ("", "")
    assert named[str(nursery.work / "engine/__init__.py")] == "engine"


def test_module_without_a_file_is_told_where_it_was_asked_for(nursery: Nursery) -> None:
    nursery.module("engine/layers/norm.py")
    nursery.start("import engine.layers.norm\n", of="engine")
    (answer,) = nursery.answers(1, packages=["engine"], modules=["engine.layers", "sys"])

    assert [one[:2] for one in answer.told["modules"] if not one[1]] == [["sys", ""], ["engine.layers", ""]]


def test_busy_interpreter_names_thousands_of_files_without_delay(nursery: Nursery) -> None:
    many = "import sys\nfor n in range(3000):\n    one = type(sys)(f'engine.m{n}')\n    one.__file__ = f'/x/m{n}.py'\n"
    nursery.module("engine/__init__.py", many + "    sys.modules[one.__name__] = one\n")
    code = f"{IMPORTED}import time\ntime.sleep(0.3)\nprint('ready', flush=True)\nwhile True: pass\n"
    nursery.start(code, of="engine")
    (answer,) = nursery.answers(1, files=["/x/m7.py"])

    assert len(answer.told["modules"]) > 3000
    assert answer.told["took_s"] < 1.0


def test_attester_is_silent_under_strict_warnings(nursery: Nursery) -> None:
    code = f"{IMPORTED}import time, sys\nfoo = engine.Foo()\n"
    child = nursery.start(code, "-X", "dev", "-W", "error", python=sys.executable, of="engine")
    (answer,) = nursery.answers(1, classes=["Foo"], arguments=["Foo"])

    assert answer.told["classes"]["Foo"]["alive"] == 1
    assert child.poll() is None


# --- other namespaces, other users


def unshared() -> bool:
    done = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False)
    return os.geteuid() == 0 and done.returncode == 0


@pytest.mark.skipif(not unshared(), reason="no mount namespace can be made here")
def test_file_of_a_process_that_sees_other_files_is_held_against_its_own(nursery: Nursery) -> None:
    """As in a container that keeps our variables: here lies another file under that path, or none."""
    patched = nursery.module("inside/worker.py", "x = 1  # as the container has it\n")
    shown = nursery.module("engine/worker.py", "x = 1\n")
    other = nursery.module("other.py", "y = 2\n")
    script = nursery.work / "run.py"
    script.write_text("import engine.worker, sys\nprint('ready', flush=True)\nsys.stdin.read()\n")
    mounted = f"mount --bind {patched} {shown} && exec {sys.executable} {script}"
    child = subprocess.Popen(
        ["unshare", "-m", "sh", "-c", mounted],
        env=nursery.env(of="engine"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    nursery.running.append(child)
    assert child.stdout
    assert child.stdout.readline() == "ready\n"
    nursery.answers(1)
    (nursery.folder / "attest").symlink_to(nursery.sockets)
    order = Order(packages=("engine",), files=(str(shown), str(other)))
    seen = look(str(nursery.folder), [(child.pid, "engine")], order, Redactor())
    (found,) = seen["files"]

    assert (found["path"], found["stale"], found["asked"]) == (str(shown), [], [str(shown)])
    assert found["sha256"] == hashlib.sha256(patched.read_bytes()).hexdigest()[:16]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_process_that_became_another_user_is_not_said_to_have_loaded_nothing(nursery: Nursery) -> None:
    child = nursery.start("import os\nos.setuid(65534)\n", of="engine")
    (nursery.folder / "attest").symlink_to(nursery.sockets)
    (told,) = look(str(nursery.folder), [(child.pid, "engine")], Order(), Redactor())["processes"]

    assert told["error"].startswith("it runs as another user")
