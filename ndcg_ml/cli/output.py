"""How commands print: tables on a terminal, the same columns without lines, colour or wrapping in a pipe, and JSON."""

from __future__ import annotations

import json
import shlex
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click
import rich.table
from rich import box
from rich.console import Console
from rich.text import Text

from ndcg_ml._one_line import visible
from ndcg_ml._show.plain import finite
from ndcg_ml._show.table import Table
from ndcg_ml.cli.written import OUTPUT
from ndcg_ml.flavor import PRESETS, Flavor

IDS_IN_JSON = """
\b
Ids of a parquet file are printed as numbers and text where JSON has them; dates and times in ISO 8601
(with a time zone: in UTC), bytes in hexadecimal, all others (decimals, durations, infinite numbers) as
text.
"""
"""For the help of a command."""

_Command = TypeVar("_Command", bound=Callable[..., Any])

# Wider than any table, so that a program reading a pipe gets one line per row.
_UNWRAPPED = 1_000_000
# Characters for the name of a fact.
_NAME = 12


class Screen:
    """Standard output.

    Attributes
    ----------
    is_terminal : bool
    width : int
    digits : int
        Decimals.
    """

    def __init__(self, digits: int) -> None:
        # Ids and file names are printed as they are: "[b]" is no markup in them.
        self._console = Console(markup=False, emoji=False, highlight=False)
        self.is_terminal: bool = self._console.is_terminal
        self.digits = digits
        if not self.is_terminal:
            self._console = Console(markup=False, emoji=False, highlight=False, color_system=None, width=_UNWRAPPED)
        self.width: int = self._console.width

    def print(self, what: rich.table.Table | Text | str = "") -> None:
        """Print one table or text; in a pipe, without wrapping or trailing blanks."""
        if self.is_terminal:
            self._console.print(what)
            return
        with self._console.capture() as captured:
            self._console.print(what)
        click.echo("\n".join(line.rstrip() for line in captured.get().split("\n")), nl=False)

    def table(self, table: Table) -> None:
        """A table and its caption; on a terminal with lines, and with words that fold where it is narrow."""
        printed = self._empty(table)
        for row in table.rows:
            printed.add_row(*map(self.text, row))
        self.print(printed)
        if table.caption:
            self.print(self.text(table.caption))

    def _empty(self, table: Table) -> rich.table.Table:
        printed = rich.table.Table(
            box=box.SIMPLE_HEAD if self.is_terminal else None,
            show_edge=False,
            pad_edge=False,
            padding=(0, 2, 0, 0),
            header_style="bold",
        )
        for heading, side in zip(table.head, table.sides(), strict=True):
            printed.add_column(
                heading, justify="left" if side == "l" else "right", overflow="fold", no_wrap=side == "r"
            )
        return printed

    def fact(self, name: str, words: str) -> None:
        """A line of a list of facts."""
        grid = rich.table.Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(width=_NAME, style="bold", no_wrap=True)
        grid.add_column(overflow="fold")
        grid.add_row(name, words)
        self.print(grid)

    def flavor(self, flavor: Flavor, name: str = "flavor") -> None:
        """A flavor as text (on a terminal, wrapped after commas), and the presets that equal it."""
        text = str(flavor)
        if self.is_terminal:
            lines = textwrap.wrap(text.replace(",", ", "), self.width - _NAME - 2, break_long_words=False)
            text = "\n".join(line.replace(", ", ",") for line in lines)
        self.fact(name, text)
        presets = [name for name, preset in PRESETS.items() if preset.replace(k=None) == flavor.replace(k=None)]
        if presets:
            self.fact("", f"as the preset{'s' * (len(presets) > 1)} {', '.join(presets)}")

    def text(self, value: object) -> str:
        """An id or a file name, with escapes for what standard output cannot show or moves the cursor."""
        encoding = self._console.encoding
        shown = str(value).encode(encoding, "backslashreplace").decode(encoding)
        return visible(shown)

    def number(self, value: float | None, sign: bool = False) -> str:
        """A number with the digits that were asked for; ``-`` where there is none."""
        if finite(value) is None:
            return "-"
        return f"{value:{'+' if sign else ''}.{self.digits}f}"

    def at_least(self, value: float) -> str:
        """A probability; ``below 0.0001`` where the digits would show 0."""
        shown = self.number(value)
        return shown if float(shown) else f"below {10.0**-self.digits:g}"


def print_json(document: Mapping[str, Any]) -> None:
    """One JSON object on standard output."""
    click.echo(json.dumps(document, indent=2, allow_nan=False))


# -- reports ----------------------------------------------------------------------------------------------------------


def html_option(command: _Command) -> _Command:
    """``--html``: the file of a report, which could be written as far as can be known before any work."""
    return click.option(
        "--html",
        type=OUTPUT,
        callback=_report_file,
        help="Write a report to this HTML file as well, in the place of any older one.  Needs pip install "
        "'ndcg_ml[report]'.",
    )(command)


def _report_file(_: click.Context, __: click.Parameter, file: str | None) -> str | None:
    if file is None:
        return None
    from ndcg_ml._show.report import require  # only reports need it and its many imports

    try:
        require()
    except ImportError as error:
        raise click.ClickException(str(error)) from error
    return file


def command_line() -> str | None:
    """The command as it was typed, quoted for a shell."""
    arguments = click.get_current_context().find_root().obj
    return None if arguments is None else shlex.join(arguments)
