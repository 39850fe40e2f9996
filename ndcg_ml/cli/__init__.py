"""The ``ndcg-ml`` command.

Importing this package imports nothing but the standard library: the command's own needs (click, rich) are looked for
when it starts, and the frameworks when a command that uses them runs.
"""

from __future__ import annotations

import sys

__all__ = ["main"]

_NEEDS = ("click", "rich")


def main() -> None:
    """Run ``ndcg-ml`` with the arguments of the process, or say how to install what it lacks."""
    try:
        from ndcg_ml.cli.commands import ndcg_ml
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _NEEDS:
            raise
        print(
            f"The ndcg-ml command needs {missing}, which is not installed. Install it with: pip install 'ndcg_ml[cli]'",
            file=sys.stderr,
        )
        raise SystemExit(1) from None
    ndcg_ml(prog_name="ndcg-ml")
