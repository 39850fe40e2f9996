"""``pytest tests/core`` starts quickly: it needs only NumPy, hypothesis and pytest."""

import subprocess
import sys
from pathlib import Path

from core.conftest import FRAMEWORKS

# Rewriting assertions would take most of the time, so it is off.
COLLECT = """
import sys, pytest
status = pytest.main(["--collect-only", "-qq", "--assert=plain", "-p", "no:cacheprovider", sys.argv[1]])
print(int(status), [name for name in sys.argv[2:] if sys.modules.get(name)])
"""


def collected(folder: Path) -> str:
    """Return the last line that the collection of the folder prints in a new interpreter."""
    command = [sys.executable, "-c", COLLECT, str(folder), *FRAMEWORKS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=Path(__file__).parents[2])
    return done.stdout.splitlines()[-1]


def test_collecting_these_tests_loads_no_framework() -> None:
    assert collected(Path(__file__).parent) == "0 []"


def test_the_check_detects_a_framework(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("import sys\nsys.modules['pandas'] = sys\n\ndef test_nothing(): ...\n")
    assert collected(tmp_path) == "0 ['pandas']"
