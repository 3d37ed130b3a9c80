"""Commands that other distributions bring along, such as `vigil draft` of vigil-draft: the entry points `vigil.commands`."""

from typing import TYPE_CHECKING

from vigil.cli.saying import mention
from vigil.errors import UsageError
from vigil.screen import plain

if TYPE_CHECKING:
    import typer

GROUP = "vigil.commands"
# Ours, by the distribution that holds them: what is not installed is said, where a misspelt command would be.
OURS = {"draft": "vigil-draft"}


def plugins() -> tuple[str, ...]:
    """Return the names of the commands that other distributions bring along."""
    from importlib.metadata import entry_points  # 15 ms that most commands do without

    return tuple(sorted({one.name for one in entry_points(group=GROUP)}))


def refuse_missing(word: str) -> None:
    """Refuse a command of ours whose distribution is not installed.

    Raises:
        UsageError: What to install.

    """
    if word in OURS and word not in plugins():
        raise UsageError(f"`vigil {word}` is not installed here: pip install {OURS[word]}")


def load(name: str, *, asked: bool) -> "typer.Typer | None":
    """Return the typer application of a plugin; None where it does not load and nobody asked for it.

    Raises:
        UsageError: It was asked for, and does not load.

    """
    from importlib.metadata import entry_points

    point = next(one for one in entry_points(group=GROUP) if one.name == name)
    try:
        group: typer.Typer = point.load()
    except Exception as error:
        text = f"`vigil {name}` ({point.value}) does not load: {type(error).__name__}: {error}"
        if asked:
            raise UsageError(text) from error
        mention(plain(text, 300))
        return None
    return group
