"""``ndcg-ml identify``: which flavors give a reported number."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

import click
from rich.console import Console

from ndcg_ml._shown import shown
from ndcg_ml.cli.inputs import Inputs, takes_data
from ndcg_ml.cli.output import Screen, columns, print_json
from ndcg_ml.cli.parameters import cut_off, json_option
from ndcg_ml.flavor import switch_text
from ndcg_ml.identification import Identification, Match
from ndcg_ml.identification import identify as find

__all__ = ["identify"]

# More decimals than these are those of a float, and not of a printed number.
_MOST_DECIMALS = 9


def _number(value: str) -> Decimal:
    """A number, with the decimals that it is written with."""
    try:
        number = Decimal(value)
    except InvalidOperation:
        number = Decimal("nan")
    if not number.is_finite():
        raise click.BadParameter(f"must be a finite number; got {shown(value)}.")
    return number


_EPILOG = """\
\b
Example:
  ndcg-ml identify 0.5058 -k 10 --qrels qrels.txt --run run.txt

\b
--json prints
  value      as it was given
  decimals   to which it was rounded, null if it is exact
  truncated  whether nothing rounds to it, and the matches are cut off to it
  matches    [{name, flavor, value, presets, n_others, free}]: presets with the same value, how many
             other flavors have it too, and {switch: [values that do as well]}
  nearest    the same, of what comes closest where nothing matches
  n_tried    how many flavors were compared
  not_tried  {preset or switch: why the data rule it out}
  reasons    {switch: what in the data makes it idle}
"""


@click.command(epilog=_EPILOG)
@click.argument("value", metavar="VALUE", type=_number)
@takes_data
@click.option(
    "-k",
    "ks",
    type=cut_off,
    metavar="K",
    multiple=True,
    help="The cut-off, or 'none', where it is known; may be repeated.  [default: each preset's own, none, 1, 3, 5, "
    "10, 20, 100]",
)
@click.option(
    "--decimals",
    type=click.IntRange(0, 15),
    help="To how many decimals VALUE was rounded.  [default: as many as it is written with; beyond "
    f"{_MOST_DECIMALS} it is exact, to 1e-9]",
)
@click.option("--top", type=click.IntRange(1), default=10, show_default=True, help="How many matches to list.")
@click.option(
    "--digits", type=click.IntRange(0, 17), help="Decimals of the numbers in tables.  [default: two more than VALUE's]"
)
@json_option
def identify(
    value: Decimal,
    data: Inputs,
    ks: Sequence[tuple[int | None]],
    decimals: int | None,
    top: int,
    digits: int | None,
    as_json: bool,
) -> None:
    """Find the flavors that give VALUE.

    First the presets, then every combination of the usual switches. The exit code is 1 if no flavor gives VALUE. The
    data are --qrels with --run, --labels with --scores, or --table, as for eval.
    """
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    written = max(0, -exponent)
    rounded = (written if written <= _MOST_DECIMALS else None) if decimals is None else decimals
    arguments = data.arguments()
    cut_offs = tuple(dict.fromkeys(k for (k,) in ks)) or ...
    with data.refusals(), Console(stderr=True).status("trying flavors"):
        result = find(float(value), **arguments, k=cut_offs, decimals=rounded)
    if as_json:
        print_json(result.to_dict())
    else:
        shown = min(17, (_MOST_DECIMALS if rounded is None else rounded) + 2) if digits is None else digits
        _show(Screen(shown), result, value, top, data.queries or "qrels" if data.qrels else None)
    if not result.matches:
        raise click.exceptions.Exit(1)


def _show(screen: Screen, result: Identification, value: Decimal, top: int, queries: str | None) -> None:
    count = len(result.matches)
    cut = ", if it was cut off rather than rounded" if result.truncated else ""
    screen.print(f"{value}: {count} match{'es' * (count > 1)}{cut}" if count else f"{value}: no match. The nearest are")
    screen.print()
    listed = result.matches or result.nearest
    table = columns(screen, "flavor", "value", "others")
    for match in listed[:top]:
        table.add_row(match.name, screen.number(match.value), str(match.n_others))
    screen.print(table)
    if len(listed) > top:
        screen.print(f"and {len(listed) - top} more")
    if listed:
        screen.print()
        _first(screen, result, listed[0])
    screen.fact("tried", f"{result.n_tried} flavors")
    if queries is not None and not result.matches:
        screen.fact("topics", f"those of --queries {queries}; VALUE may be a mean over others")
    by_reason: dict[str, list[str]] = {}
    for name, reason in result.not_tried.items():
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        screen.fact("not tried", f"{', '.join(names)}: {reason}")


def _first(screen: Screen, result: Identification, match: Match) -> None:
    """What is known of the first match."""
    screen.fact("others", "flavors with the same value, which these data cannot tell apart")
    screen.flavor(match.flavor, "first")
    others = [name for name in match.presets if name != match.name]
    if others:
        screen.fact("same value", ", ".join(others))
    for switch, values in match.free.items():
        why = f" ({result.reasons[switch]})" if switch in result.reasons else ""
        screen.fact("", f"{switch} may be {', '.join(map(switch_text, values))}{why}")
