"""The classes that vLLM's flags take as JSON: read from a source, and what a command puts into them."""

import ast
import math
from typing import Any

import msgspec
import pytest

from vigil.plan import Plan
from vigil.preflight.config_values import wanted
from vigil.preflight.examine import examine
from vigil.preflight.finding import Report
from vigil.preflight.seen_parser import FieldSpec
from vigil.preflight.sight import Sight
from vigil.scout import vllm_source
from vigil.supervise.ahead import command_of

UTILS = "def config(cls):\n    merged = ConfigDict(extra='forbid')\n    return cls\n"
MAIN = """
class EngineArgs:
    side: SideConfig | None = None
    def add_cli_args(parser):
        side_kwargs = get_kwargs(EngineArgs)
        parser.add_argument("--side-config", **side_kwargs["side"])
"""
SIDE = """
import enum
class Shade(enum.Enum):
    DARK = 0
    LIGHT = (1, DARK)
Left = Literal["l", "both"]
Right = Literal["r", "both"]
@config
class Inner:
    deep: bool = False
@config
class SideConfig:
    side: Literal[Left, Right] | None = None
    shade: Shade = None
    other: Shade = None
    width: int = 1
    height: int | float = 1
    names: list[str] = field(default_factory=list)
    inner: Inner = field(default_factory=Inner)
    guessed: int = 0
    made: InitVar[int] = 3
    known: ClassVar[int] = 3
    either: int | str = 1
    @field_validator("shade", "guessed", mode="before")
    def _before(cls, value): ...
"""


def read(side: str = SIDE, utils: str = UTILS) -> dict[str, dict[str, Any]]:
    files = {"engine/arg_utils.py": MAIN, "entrypoints/openai/cli_args.py": "", "config/side.py": side}
    trees = {path: ast.parse(text) for path, text in {**files, "config/utils.py": utils}.items()}
    return vllm_source.read(trees).configs or {}


def test_classes_are_read_with_those_that_their_fields_are() -> None:
    found = read()

    assert found["Inner"] == {"closed": True, "fields": {"deep": {"type": "bool"}}}
    assert found["SideConfig"]["fields"] == {
        "side": {"choices": ["l", "both", "r"]},
        "shade": {"type": "enum", "choices": ["DARK", "LIGHT"]},
        "other": {},
        "width": {"type": "int"},
        "height": {"type": "float"},
        "names": {"type": "list"},
        "inner": {"config": "Inner"},
        "guessed": {},
        "made": {},
        "either": {},
    }


def test_a_class_that_reads_its_input_in_its_own_way_is_not_judged() -> None:
    early = SIDE + '    @model_validator(mode="before")\n    def _all(cls, value): ...\n'

    assert read(early) == {}
    assert read(SIDE + "    def __init__(self, **given): ...\n") == {}


def test_a_class_is_closed_as_its_decorator_says_and_else_as_all_are() -> None:
    assert read(utils="def config(cls): ...")["SideConfig"]["closed"] is False
    opened = SIDE.replace("@config\nclass SideConfig", "@config(config=ConfigDict(extra='ignore'))\nclass SideConfig")
    assert read(opened)["SideConfig"]["closed"] is False


@pytest.mark.parametrize(
    ("kind", "taken", "refused"),
    [
        ("bool", [True, "Yes", "off", 0, 1], ["maybe", 2, [True]]),
        ("int", [3, 3.0, "3", "32k", None, 10**400], ["x", 2.5, [1], {}, math.inf]),
        ("float", [1, 0.5, "1e-3", "inf"], ["half", []]),
        ("str", ["", "x", "$HOME"], [1, True, []]),
        ("list", [[], ["a"]], ["a,b", {}, 1]),
        ("dict", [{}], ["{}", []]),
        (None, [1, "x", [], {}], []),
    ],
)
def test_values_are_taken_as_pydantic_takes_them(kind: str | None, taken: list[Any], refused: list[Any]) -> None:
    field = FieldSpec(type=kind)

    assert [one for one in taken if wanted(one, field)] == []
    assert [one for one in refused if not wanted(one, field)] == []


def report(*words: str, version: str = "0.32.0") -> Report:
    command = msgspec.structs.replace(command_of(Plan(command=("vllm", "serve", "M", *words))), version=version)
    return examine(command, Sight())


def test_two_mistakes_in_one_object_are_both_made_right() -> None:
    found = report("--compilation-config", '{"cuda_graph_mode": "FULL", "pass_config": {"fuse_norm_quants": true}}')

    assert found.corrected is not None
    assert found.corrected[-1] == '{"cudagraph_mode": "FULL", "pass_config": {"fuse_norm_quant": true}}'


def test_what_a_release_drops_silently_is_a_warning_and_what_it_refuses_is_fatal() -> None:
    words = ("--compilation-config.use_inductor=false",)

    assert [one.severity.value for one in report(*words, version="0.12.0").findings] == ["warning"]
    assert [one.severity.value for one in report(*words, version="0.14.1").findings] == ["fatal"]
    assert report(*words, version="0.11.2").findings == ()


def test_a_release_that_is_not_in_the_table_is_told_only_of_what_none_has() -> None:
    unknown = report("--compilation-config", '{"no_such": 1, "use_inductor": false}', version="0.99.0")

    assert ["no_such" in one.text for one in unknown.findings] == [True]
    assert unknown.fatal == ()


def test_objects_of_a_thousand_levels_are_no_trouble() -> None:
    deep = '{"pass_config":' * 1000 + "1" + "}" * 1000

    assert len(report("--compilation-config", deep).findings) <= 2
