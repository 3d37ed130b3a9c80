"""Where results come from, in words: engine, model, hardware, settings; and which flags are not in force as asked for. Pure."""

from collections.abc import Mapping
from typing import Any

from vigil.bench.folder import Meta
from vigil.bench.report import Report
from vigil.engines import TABLES

DATE_CHARS = 10
NAME_CHARS = 60
OFF_SHARE = 0.25
"""Made prompts meet their length within some percent; those of a file have their own."""
UNKNOWN = "unknown"  # a llama-server that was built without git calls itself b0-unknown


def origin(report: Report) -> str:
    """Return in a line what was measured, on what, and how."""
    return "; ".join(filter(None, [place(report), _how(report)]))


def place(report: Report) -> str:
    """Return in a line what was measured, and on what."""
    servers = [one for one in report.servers.values() if isinstance(one, dict)]
    engines = dict.fromkeys(text for one in servers if (text := _engine(one)))
    models = dict.fromkeys(text for one in servers if (text := _model(one)))
    hardware = dict.fromkeys(text for one in servers or [{}] if (text := _hardware(one, report.meta)))
    parts = [", ".join(engines), ", ".join(models), ", ".join(hardware)]
    return "; ".join(filter(None, parts))


def _engine(server: Mapping[str, Any]) -> str:
    name = str(server.get("target", {}).get("engine") or "generic")
    if name == "generic" or name not in TABLES:
        return ""
    packages = server.get("ran_on", {}).get("packages") or {}
    settings = server.get("settings") or {}
    known = (settings.get("version"), *(packages.get(one) for one in TABLES[name].packages), settings.get("build_info"))
    return f"{TABLES[name].title} {next((str(one) for one in known if one and UNKNOWN not in str(one)), '')}".strip()


def _model(server: Mapping[str, Any]) -> str:
    return str(server.get("target", {}).get("model") or "").rstrip("/").rpartition("/")[2][:NAME_CHARS]


def _hardware(server: Mapping[str, Any], meta: Meta) -> str:
    """Return the GPUs with their driver, else the processors, of the server's host; where that is not known, of ours."""
    ran_on = server.get("ran_on") or {}
    machine = ran_on.get("machine") or meta.machine
    names = [
        str(one.get("name")) for one in ran_on.get("gpus") or (meta.machine.get("gpus") if not meta.host else ()) or ()
    ]
    if names:
        counted = [f"{names.count(name)} x {name}" if names.count(name) > 1 else name for name in dict.fromkeys(names)]
        driver = machine.get("driver")
        return ", ".join(counted) + (f" (driver {driver})" if driver else "")
    return f"{machine['cpus']} CPUs" if machine.get("cpus") else ""


def _how(report: Report) -> str:
    meta, settings = report.meta, report.meta.settings
    date = str(meta.machine.get("date") or "")[:DATE_CHARS]
    rounds = f"{settings.repeats} round{'s' if settings.repeats > 1 else ''}"
    parts = [_lengths(report), rounds, f"seed {settings.seed}", f"vigil {meta.machine.get('vigil', '?')}", date]
    return ", ".join(filter(None, parts))


def _lengths(report: Report) -> str:
    """Return how long prompts and answers were: as asked for, or as they were where a file or the model decided that."""
    settings = report.meta.settings
    seen = [row for row in report.rows if row.ended]
    prompt = sum(row.input_tokens for row in seen) / max(1, len(seen))
    if seen and abs(prompt - settings.input_tokens) > OFF_SHARE * settings.input_tokens:
        lengths = f"prompts of {prompt:.0f} tokens on average"
    else:
        lengths = f"{settings.input_tokens} tokens in"
    drawn = f" (each drawn within {settings.range_ratio:.0%} of it)" if settings.range_ratio else ""
    if settings.ignore_eos or not seen:
        return f"{lengths}, {settings.output_tokens} out{drawn}"
    answer = sum(row.output_tokens for row in seen) / len(seen)
    return f"{lengths}, answers to their natural end or {settings.output_tokens} tokens, {answer:.0f} on average{drawn}"


def not_in_force(report: Report) -> list[str]:
    """Return in words which flags the servers say are in force in another way than asked for."""
    return [
        f"{arm}: {one.get('flag')} was asked for as {one.get('asked')}, in force is {one.get('in_force')}"
        for arm, server in report.servers.items()
        for one in server.get("ran_on", {}).get("flags") or ()
        if one.get("state") == "changed"
    ]
