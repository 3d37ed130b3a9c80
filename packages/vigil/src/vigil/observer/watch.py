"""The `watch` command: what to look at, with defaults for what it leaves out."""

from typing import Any, Dict, NamedTuple, Optional, Tuple


class Paces(NamedTuple):
    """How often to look, in seconds."""

    log_s: float = 0.02
    tree_s: float = 0.25
    sample_s: float = 1.0


class Watch(NamedTuple):
    """What PROTOCOL.md says of `watch`."""

    life: Optional[str]
    pid: Optional[int]
    match: Optional[str]
    log: Optional[str]
    log_offset: Optional[int]
    log_inode: Optional[int]
    scheme: str
    host: str
    port: Optional[int]
    key: Optional[str]
    secrets: Tuple[str, ...]
    key_flags: Tuple[str, ...]
    key_variables: Tuple[str, ...]
    main_signs: Tuple[str, ...]
    workers: Tuple[str, ...]
    paces: Paces


def read_watch(command: Dict[str, Any]) -> Watch:
    """Return the command's meaning. Fields of a wrong type count as left out."""
    return Watch(
        life=_text(command, "life"),
        pid=_whole(command, "pid"),
        match=_text(command, "match"),
        log=_text(command, "log"),
        log_offset=_whole(command, "log_offset"),
        log_inode=_whole(command, "log_inode"),
        scheme=_text(command, "scheme") or "http",
        host=_text(command, "host") or "",
        port=_whole(command, "port"),
        key=_text(command, "key"),
        secrets=_texts(command, "secrets"),
        key_flags=_texts(command, "key_flags"),
        key_variables=_texts(command, "key_variables"),
        main_signs=_texts(command, "main_signs"),
        workers=_texts(command, "workers"),
        paces=read_paces(command.get("paces"), Paces()),
    )


def read_paces(value: Any, now: Paces) -> Paces:
    """Return the paces with those changed that `value` names; none is shorter than 5 ms."""
    given = value if isinstance(value, dict) else {}
    changed = {
        name: max(0.005, float(given[name])) for name in Paces._fields if isinstance(given.get(name), (int, float))
    }
    return now._replace(**changed)


def _text(command: Dict[str, Any], name: str) -> Optional[str]:
    value = command.get(name)
    return value if isinstance(value, str) and value else None


def _whole(command: Dict[str, Any], name: str) -> Optional[int]:
    value = command.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _texts(command: Dict[str, Any], name: str) -> Tuple[str, ...]:
    value = command.get(name)
    return tuple(text for text in value if isinstance(text, str)) if isinstance(value, (list, tuple)) else ()
