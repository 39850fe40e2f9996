"""Write the records of the runs, one JSON file each, with one line per defect or measurement."""

from __future__ import annotations

import importlib.metadata
import json
import platform
from datetime import date
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def save(name: str, *packages: str, **fields: Any) -> None:
    """Write the record of a run with installed versions, and keep the defects that the old record lists."""
    path = RESULTS / f"{name}.json"
    found = json.loads(path.read_text())["found"] if path.exists() else []
    installed = {each.name.lower(): each.version for each in importlib.metadata.distributions()}
    versions = {each: installed[each] for each in packages if each in installed}
    record = {**fields, "found": found, "versions": {"python": platform.python_version(), **versions}}
    path.write_text(text({**record, "date": str(date.today())}))


def text(record: dict[str, Any]) -> str:
    """Return the record as JSON, with one line per item of a list."""
    lines = []
    for key, value in record.items():
        shown = json.dumps(value)
        if isinstance(value, list) and value:
            shown = "[\n  " + ",\n  ".join(map(json.dumps, value)) + "\n ]"
        lines.append(f" {json.dumps(key)}: {shown}")
    return "{\n" + ",\n".join(lines) + "\n}\n"
