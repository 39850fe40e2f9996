"""What commands share on the command line: the types of flavors and cut-offs, and ``--digits`` and ``--json``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from ndcg_ml._shown import shown
from ndcg_ml.flavor import Flavor, as_flavor

__all__ = ["cut_off", "digits_option", "flavor_option", "flavor_text", "json_option"]

_Command = TypeVar("_Command", bound=Callable[..., Any])


def flavor_text(value: str) -> Flavor:
    """A flavor, from the name of a preset or a flavor's text."""
    try:
        return as_flavor(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def cut_off(value: str) -> tuple[int | None]:
    """A cut-off, where ``none`` is no cut-off: a sequence of one, since None is an option that was not given."""
    if value == "none":
        return (None,)
    if not (value.isascii() and value.isdigit() and int(value)):
        raise click.BadParameter(f"must be an integer of 1 or more, or 'none' for no cut-off; got {shown(value)}.")
    return (int(value),)


def flavor_option(default: str) -> Callable[[_Command], _Command]:
    """``--flavor``; `default` says in words what holds without it."""
    return click.option(
        "--flavor",
        type=flavor_text,
        metavar="FLAVOR",
        help="A preset (see 'ndcg-ml flavors') or a flavor's text, such as 'lightgbm@10[ties=average]'.  "
        f"[default: {default}]",
    )


def digits_option(command: _Command) -> _Command:
    """``--digits``."""
    return click.option(
        "--digits", type=click.IntRange(0, 17), default=4, show_default=True, help="Decimals of the numbers in tables."
    )(command)


def json_option(command: _Command) -> _Command:
    """``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object, with every digit.")(command)
