"""docs/api/json.md shows what the commands print with ``--json``."""

from __future__ import annotations

import json
import re
from pathlib import Path

from command_line import document, invoke

PAGE = (Path(__file__).parents[2] / "docs" / "api" / "json.md").read_text(encoding="utf-8")


def test_the_page_has_the_json_that_the_commands_print(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files, *examples = re.findall(r"```json\n(.*?)```", PAGE, flags=re.DOTALL)
    for name, text in re.findall(r"(\w+\.json): +(.*)", files):
        Path(name).write_text(text)
    assert invoke("eval --qrels qrels.json --run old.json -k 2 --save base.json").exit_code == 0

    commands = re.findall(r"^\$ ndcg-ml (.*)", PAGE, flags=re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["eval", "compare", "gate", "explain", "identify"]
    for command, example in zip(commands, examples, strict=True):
        printed = document(command.removesuffix(" --json"), ok=(0, 4))
        if command.startswith("gate"):
            printed["notes"] = []  # they name the date
        assert printed == json.loads(example)
