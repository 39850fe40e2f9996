"""``ndcg-ml identify``: the flavors that give a number."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

import click

from ndcg_ml._identification import MOST_DECIMALS as _MOST_DECIMALS
from ndcg_ml._identification import identify as find
from ndcg_ml._one_line import shown
from ndcg_ml.cli.inputs import Inputs, cut_off, json_option, takes_data
from ndcg_ml.cli.output import print_json, show


def _finite_number(value: str) -> Decimal:
    """A number with its decimals as written."""
    try:
        number = Decimal(value)
    except InvalidOperation:
        number = Decimal("nan")
    if not number.is_finite():
        raise click.BadParameter(f"must be a finite number; got {shown(value)}.")
    return number


_IDENTIFY_JSON = """\
\b
Example:
  ndcg-ml identify 0.5058 -k 10 --qrels qrels.txt --run run.txt

\b
--json prints
  value      as it was given
  decimals   how many it was rounded to, null if it is exact
  truncated  true where no flavor rounds to VALUE, and the matches are those that give it when cut off
  matches    [{name, flavor, value, presets, n_others, free}]: presets with the same value, how many
             other flavors have it too, and {switch: [other settings with the same value]}
  nearest    the same for the closest flavors, where nothing matches
  n_tried    how many flavors were compared
  cutoffs    the cut-offs that were tried
  not_tried  {preset: why the data rule it out}
  reasons    {switch: why it has no effect on these data}
  by_chance, presets_by_chance
             how many matches, and how many with a preset, a made-up number close to VALUE has on average
"""


@click.command(epilog=_IDENTIFY_JSON)
@click.argument("value", metavar="VALUE", type=_finite_number)
@takes_data
@click.option(
    "-k",
    "ks",
    type=cut_off,
    metavar="K",
    multiple=True,
    help="The cut-off, or 'none', if it is known; may be repeated.  [default: each preset's own, none, 1, 3, 5, "
    "10, 15, 20, 30, 50, 100, 200, 500, 1000; if no list is longer than 20, all up to the longest]",
)
@click.option(
    "--decimals",
    type=click.IntRange(0, 15),
    help="How many decimals VALUE was rounded to.  [default: as many as it has; with more than "
    f"{_MOST_DECIMALS} it is exact, to 1e-9]",
)
@json_option
def identify(
    value: Decimal,
    data: Inputs,
    ks: Sequence[tuple[int | None]],
    decimals: int | None,
    as_json: bool,
) -> None:
    """Find the flavors that give VALUE.

    First the presets, then the presets with one switch changed. The exit code is 1 if no flavor gives VALUE. The
    data are --qrels with --run, --labels with --scores, or --table, as for eval.
    """
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    written = max(0, -exponent)
    rounded = (written if written <= _MOST_DECIMALS else None) if decimals is None else decimals
    arguments = data.arguments()
    cut_offs = tuple(dict.fromkeys(k for (k,) in ks)) or ...
    with data.refusals():
        result = find(float(value), **arguments, k=cut_offs, decimals=rounded)
    if as_json:
        print_json(result.to_dict())
    else:
        show(str(result))
    if not result.matches:
        raise click.exceptions.Exit(1)
