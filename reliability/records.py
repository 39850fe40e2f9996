"""The records of the runs: one JSON file each, one line for each thing that was found or measured."""

from __future__ import annotations

import importlib.metadata
import json
import platform
from datetime import date
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def save(name: str, *packages: str, **fields: Any) -> None:
    """Write the record of a run, with the versions that are installed, keeping what was found before."""
    path = RESULTS / f"{name}.json"
    found = json.loads(path.read_text())["found"] if path.exists() else []
    installed = {each.name.lower(): each.version for each in importlib.metadata.distributions()}
    versions = {each: installed[each] for each in packages if each in installed}
    record = {**fields, "found": found, "versions": {"python": platform.python_version(), **versions}}
    path.write_text(text({**record, "date": str(date.today())}))


def text(record: dict[str, Any]) -> str:
    """The record as JSON, with lists of more than one line."""
    lines = []
    for key, value in record.items():
        shown = json.dumps(value)
        if isinstance(value, list) and value:
            shown = "[\n  " + ",\n  ".join(map(json.dumps, value)) + "\n ]"
        lines.append(f" {json.dumps(key)}: {shown}")
    return "{\n" + ",\n".join(lines) + "\n}\n"
