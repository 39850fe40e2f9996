"""Print results as text or JSON, and write reports."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from ndcg_ml.cli.written import OUTPUT

_Command = TypeVar("_Command", bound=Callable[..., Any])


def show(text: str) -> None:
    """Print a result, with escapes for characters that standard output cannot encode."""
    encoding = sys.stdout.encoding or "utf-8"
    click.echo(text.encode(encoding, "backslashreplace").decode(encoding))


def print_json(document: Mapping[str, Any]) -> None:
    """Print one JSON object."""
    click.echo(json.dumps(document, indent=2, allow_nan=False))


# -- reports ----------------------------------------------------------------------------------------------------------


def html_option(command: _Command) -> _Command:
    """Add the option ``--html`` to a command."""
    return click.option(
        "--html",
        type=OUTPUT,
        callback=_report_file,
        help="Also write a report to this HTML file, replacing any existing file.  Requires pip install "
        "'ndcg_ml[report]'.",
    )(command)


def _report_file(_: click.Context, __: click.Parameter, file: str | None) -> str | None:
    if file is None:
        return None
    from ndcg_ml._show.report import require  # imported only for reports, because it imports much

    try:
        require()
    except ImportError as error:
        raise click.ClickException(str(error)) from error
    return file


def command_line() -> str | None:
    """Return the command line, quoted for a shell."""
    arguments = click.get_current_context().find_root().obj
    return None if arguments is None else shlex.join(arguments)
