"""How to reach a host: nothing (this machine), the user's own ssh, or any command prefix that runs a program there."""

import shlex
import sys

import msgspec

from vigil.errors import UsageError
from vigil.hosts.bundle import LOADER


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """`prefix` runs what follows on the host with standard input and output; `quoted`: the far side is a shell (ssh)."""

    label: str = "here"
    prefix: tuple[str, ...] = ()
    quoted: bool = False

    @property
    def local(self) -> bool:
        """Whether the host is this machine, reached by nothing."""
        return not self.prefix

    @property
    def command(self) -> list[str]:
        """The command line that runs the loader there."""
        if self.local:
            return [sys.executable, "-I", "-S", "-c", LOADER]
        words = ["python3", "-I", "-S", "-c", LOADER]
        return [*self.prefix, shlex.join(words)] if self.quoted else [*self.prefix, *words]


def reach_of(on: str | None, reach: str | None) -> Reach:
    """Return the reach for `--on HOST` or `--reach COMMAND`; raise `UsageError` where both or nonsense were given."""
    if on and reach:
        raise UsageError("--on and --reach exclude each other: give one")
    if on:
        if on.startswith("-") or not on.strip():
            raise UsageError(f"{on!r} is no host name")
        return Reach(label=on, prefix=(*SSH, on), quoted=True)
    if reach:
        try:
            words = tuple(shlex.split(reach))
        except ValueError as error:
            raise UsageError(f"--reach {reach!r}: {error}") from error
        if not words:
            raise UsageError(
                "--reach is empty: give a command that runs a program there, such as 'docker exec -i NAME'"
            )
        return Reach(label=reach, prefix=words, quoted=_ends_in_a_shell(words))
    return Reach()


def _ends_in_a_shell(words: tuple[str, ...]) -> bool:
    """Say whether the far side joins our words and gives them to a shell, as ssh does, also behind sshpass, sudo or gcloud."""
    programs = [word.rpartition("/")[2] for word in words]
    return programs[0] == "ssh" or (programs[0] not in _DIRECT and "ssh" in programs[1:-1])


# They hand the words over as they are; "ssh" among them is a name.
_DIRECT = {"docker", "podman", "nerdctl", "kubectl", "oc", "crictl", "lxc", "incus", "sh", "bash", "nsenter", "chroot"}


# Their config, agents and jumps; only what makes a broken line show itself is added. BatchMode: nobody is there to type.
# No control socket of our own: measured on loopback it saves 0.35 s of 0.95 s a call, and `up` makes two or three; but with a
# frozen master the next call fails after 29 s instead of 10 s, and the master would outlive us. The user's own, where their
# config has one, is used.
SSH = (
    "ssh",
    "-T",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "ServerAliveInterval=5",
    "-o",
    "ServerAliveCountMax=3",
)
