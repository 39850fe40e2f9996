"""The working folder of the command line's tests."""

import pytest


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """Small files in the working folder."""
    from command_line import BETTER, LABELS, QRELS, RUN, SCORES, TABLE

    contents = {"qrels": QRELS, "run": RUN, "better": BETTER, "labels": LABELS, "scores": SCORES, "table.csv": TABLE}
    for name, content in contents.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path
