"""The rules are read when a diagnosis first asks: commands that never do need not wait for them."""

import subprocess
import sys

WATCH = """
import sys
read = []
sys.addaudithook(lambda event, args: read.append(str(args[0])) if event == "open" and str(args[0]).endswith(".toml") else None)
import vigil, vigil.verdict, vigil.changes, vigil.engines, vigil.supervise.watch, vigil.supervise.autopsy, vigil.cli.app
print(len(read))
from vigil.diagnosis import End, diagnose
diagnose([], End(code=1))
print(len(read) > 40)
again = len(read)
diagnose([], End(code=1))
print(len(read) - again)
"""


def test_no_rule_is_read_before_a_diagnosis_and_each_once() -> None:
    done = subprocess.run([sys.executable, "-c", WATCH], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "True", "0"]
