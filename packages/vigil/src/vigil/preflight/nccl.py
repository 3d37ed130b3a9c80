"""The variables of NCCL by release, how each is read, and the words that some take: a table made by `bench/nccl_variables.py`."""

import re
from functools import cache
from importlib import resources

import msgspec

# Read by torch 2.13 under names without TORCH_ (c10d/ProcessGroupNCCL.hpp), or set by images and installers.
OF_OTHERS = (
    "NCCL_ASYNC_ERROR_HANDLING", "NCCL_BLOCKING_WAIT", "NCCL_DESYNC_DEBUG", "NCCL_ENABLE_TIMING",
    "NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK", "NCCL_VERSION",
)  # fmt: skip
_NUMBERS = re.compile(r"(\d{1,4})\.(\d{1,4})")


class NcclTable(msgspec.Struct, frozen=True, kw_only=True):
    """`variables`: of each how it is read ("number", "level", "text", "other"), by the releases (their indexes) that do so.

    `words`: those that a variable takes, `functions` what may stand before a `:` in two of them, `levels` those of distances.
    """

    releases: tuple[str, ...]
    variables: dict[str, dict[str, tuple[int, ...]]]
    words: dict[str, dict[str, tuple[int, ...]]]

    def holds(self, version: str | None) -> bool:
        """Tell whether a version is of a minor release of the table."""
        return bool(self._of(version))

    def of(self, version: str | None) -> frozenset[int]:
        """Return the indexes of the releases that a version may be: that of its minor, all where it is none of the table's."""
        return frozenset(self._of(version) or range(len(self.releases)))

    def _of(self, version: str | None) -> list[int]:
        found = _NUMBERS.match(version or "")
        minor = f"{found.group(0)}." if found is not None else "?"
        return [at for at, one in enumerate(self.releases) if one.startswith(minor)]

    def names(self, places: frozenset[int]) -> list[str]:
        """Return the variables that some of these releases read."""
        return [name for name, kinds in self.variables.items() if any(places & set(one) for one in kinds.values())]

    def kind(self, name: str, places: frozenset[int]) -> str:
        """Return how these releases read a variable, "" where they differ or do not read it."""
        found = {kind for kind, there in self.variables.get(name, {}).items() if places & set(there)}
        return found.pop() if len(found) == 1 else ""

    def first(self, name: str) -> str:
        """Return the first release of the table that reads a variable."""
        return self.releases[min(at for there in self.variables[name].values() for at in there)]

    def taken(self, name: str, places: frozenset[int]) -> list[str]:
        """Return the words that a variable takes in some of these releases."""
        return [word for word, there in self.words[name].items() if places & set(there)]


@cache
def table() -> NcclTable:
    """Return the table."""
    return msgspec.json.decode((resources.files("vigil.preflight") / "nccl.json").read_bytes(), type=NcclTable)
