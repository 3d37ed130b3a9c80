"""How long the redactor takes for hostile lines of 8 KiB: milliseconds of processor time, the best of five."""

import itertools
import time

from vigil.observer.redact import Redactor

LINE = 8192
PIECES = (
    *(
        "api_key=[",
        "api_key=['",
        'api_key="',
        "api_key ",
        "key -",
        "key ",
        "secret ",
        "secret:",
        "--",
        "-",
        "--secret ",
    ),
    *(
        "--secret '",
        "KEY=",
        "KEY_",
        "A_KEY ",
        "KEY=aaaaaaaa ",
        "A" * 60 + "KEY ",
        "TOKEN",
        "eyJaaaaaaaa.",
        "://:",
        "://a:b",
    ),
    *(
        "bearer ",
        "sk-",
        "hf_",
        "password: x ",
        r"\"api_key\": ",
        "akia",
        " ",
        "\t",
        "=",
        "[",
        "'",
        "İkey=",
        "ghp_",
        "token ",
        "key",
    ),
)


def measure(line: str) -> float:
    """Return the milliseconds that one line takes."""
    redactor = Redactor()
    best = float("inf")
    for _ in range(5):
        begun = time.thread_time()
        redactor.clean(line)
        best = min(best, time.thread_time() - begun)
    return best * 1000


def main() -> None:
    """Print the slowest lines of all that two pieces make."""
    lines = {"key " + "-" * 8180: "the dashes", "api_key=[" * 900: "the lists"}
    for first, second in itertools.product(PIECES, repeat=2):
        both = (first + second) * (LINE // len(first + second))
        lines[both] = f"{first!r} + {second!r}, again and again"
        lines[f"{first} api_key {second * (LINE // len(second))}"[:LINE]] = (
            f"{first!r} api_key, then {second!r} again and again"
        )
    slowest = sorted(((measure(line), what) for line, what in lines.items()), reverse=True)
    for cost_ms, what in slowest[:12]:
        print(f"{cost_ms:7.3f} ms  {what}")
    for line, what in list(lines.items())[:2]:
        print(f"{measure(line):7.3f} ms  {what}")


if __name__ == "__main__":
    main()
