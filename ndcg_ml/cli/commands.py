"""The command group ``ndcg-ml``, and its commands ``flavors``, ``eval``, ``explain`` and ``identify``."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import fields, replace
from decimal import Decimal, InvalidOperation
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from ndcg_ml import __version__
from ndcg_ml._checks import ByK
from ndcg_ml._flavor.divergences import declared
from ndcg_ml._flavor.text import empty_in_words, switch_text
from ndcg_ml._identify import MOST_DECIMALS as _MOST_DECIMALS
from ndcg_ml._identify import Identification, Match
from ndcg_ml._identify import identify as find
from ndcg_ml._one_line import shown
from ndcg_ml._show.table import Table
from ndcg_ml.cli.inputs import (
    BadInput,
    Inputs,
    cut_off,
    digits_option,
    flavor_option,
    flavor_text,
    json_option,
    takes_data,
)
from ndcg_ml.cli.output import (
    IDS_IN_JSON,
    Screen,
    command_line,
    html_option,
    print_json,
)
from ndcg_ml.cli.written import OUTPUT, refuse_overwriting
from ndcg_ml.flavor import PRESETS, Flavor
from ndcg_ml.presets import MIRRORS, Mirror
from ndcg_ml.result import Evaluation, at_cutoff
from ndcg_ml.runs import RunEvaluation

if TYPE_CHECKING:
    from ndcg_ml.explain import Explanation


_LATER = {
    "compare": ("ndcg_ml.cli.compare", "compare"),
    "demo": ("ndcg_ml.demo.run", "demo"),
    "gate": ("ndcg_ml.cli.gate", "gate"),
    "judge-next": ("ndcg_ml.cli.judge_next", "judge_next"),
}
"""Commands that are imported when they are asked for, so that none waits for what another needs."""


class _Group(click.Group):
    """Keeps the arguments as they were typed, which a report shows, and imports commands when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *_LATER])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _LATER:
            return super().get_command(ctx, cmd_name)
        module, name = _LATER[cmd_name]
        command: click.Command = getattr(import_module(module), name)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.obj = ["ndcg-ml", *args]
        return super().parse_args(ctx, args)


@click.group(
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 fine, 1 nothing found (identify) or output that cannot be written, 2 wrong arguments or data "
    "that cannot be used, 130 interrupted. Of gate: 0 not worse, 3 worse, 4 cannot tell, 1 data that cannot be used or "
    "compared, 2 wrong arguments.",
)
@click.version_option(__version__, prog_name="ndcg-ml")
def ndcg_ml() -> None:
    """NDCG defined once, and the same number from it everywhere."""


# -- flavors ----------------------------------------------------------------------------------------------------------

_DIGITS = 4
_SWITCHES = ("gain", "discount", "ideal", "ties", "empty")


def _named(value: str) -> tuple[Flavor, Mirror | None]:
    """A flavor with the mirror that the user named, where several presets are equal."""
    flavor = flavor_text(value)
    start = value.partition("@")[0]
    same = start in PRESETS and PRESETS[start].replace(k=None) == flavor.replace(k=None)
    return flavor, MIRRORS.get(start if same else flavor.preset_name or "")


_FLAVORS_JSON = """\
\b
--json without NAME: {"flavors": [...]}, each with
  name        the preset
  library     the library with its version, or the paper
  verified    how it was verified
  differs     what of the library is declared as not reproduced
  unusual     what its users should know
  alias_of    the preset whose NDCG this is; null where the entry stands for itself
  text        the flavor as text, which --flavor takes
  switches    every field of the flavor; nan is the text "nan"
--json with NAME: one such object; name, library, verified, unusual and alias_of are null where it is not a
preset.
It also has
  same_as     other presets that are this flavor, perhaps with another cut-off
  words       the formula and every switch, in words
"""


@ndcg_ml.command(epilog=_FLAVORS_JSON)
@click.argument("named", metavar="[NAME]", type=_named, required=False)
@json_option
def flavors(named: tuple[Flavor, Mirror | None] | None, as_json: bool) -> None:
    """List what every library calls NDCG.

    NAME is a preset or any flavor's text, such as 'lightgbm@10[ties=average]'. In the tables, y is the grade of a
    document and r its rank. The default Flavor, whose text is 'ndcg', is not a preset.
    """
    if named is not None:
        _one_flavor(*named, as_json=as_json)
    elif as_json:
        print_json({"flavors": [_flavor_document(PRESETS[name], mirror) for name, mirror in MIRRORS.items()]})
    else:
        _all_flavors(Screen(_DIGITS))


def _one_flavor(flavor: Flavor, mirror: Mirror | None, *, as_json: bool) -> None:
    same_as = [
        name
        for name, preset in PRESETS.items()
        if preset.replace(k=None) == flavor.replace(k=None) and (mirror is None or name != mirror.name)
    ]
    if as_json:
        print_json({**_flavor_document(flavor, mirror), "same_as": same_as, "words": flavor.describe()})
        return
    screen = Screen(_DIGITS)
    formula, *words = flavor.describe().split("\n")
    screen.print(Text(formula, style="bold"))
    for line in words:
        name, _, rest = line.strip().partition(" ")
        # The mirror that the user named is printed below; the flavor may name another that is equal.
        if name not in ("preset", "note", "verified", "differs", "also", "text"):
            screen.fact(name, rest.strip())
    screen.print()
    if mirror is None:
        screen.fact("mirrors", "no library or paper: it is not a preset")
    else:
        alias = "" if mirror.alias_of is None else f", an alias of {mirror.alias_of}"
        screen.fact("preset", f"{mirror.name}{alias}")
        screen.fact("mirrors", mirror.library)
        screen.fact("verified", mirror.verified)
        screen.fact("unusual", mirror.unusual)
        for entry in declared(mirror.name):
            screen.fact("differs", str(entry))
    screen.flavor(flavor, "text")


def _all_flavors(screen: Screen) -> None:
    headings = ("flavor", *_SWITCHES, "k")
    rows = [(name, *(_short(getattr(PRESETS[name], switch)) for switch in (*_SWITCHES, "k"))) for name in MIRRORS]
    if not screen.is_terminal:
        cells = [(*row, mirror.library, mirror.unusual) for row, mirror in zip(rows, MIRRORS.values(), strict=True)]
        screen.table(Table((*headings, "library", "unusual"), cells, "l" * (len(headings) + 2)))
        return
    # One line of switches, then the words, which would be too narrow to read as columns.
    widths = [max(map(len, cells)) for cells in zip(headings, *rows, strict=True)]

    def line(row: tuple[str, ...]) -> str:
        return "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()

    screen.print(Text(line(headings), style="bold"))
    for row, mirror in zip(rows, MIRRORS.values(), strict=True):
        screen.print(Text.assemble((row[0], "bold"), line(row)[len(row[0]) :]))
        for words, style in ((mirror.library, "cyan"), (mirror.unusual, "dim")):
            indented = textwrap.fill(words, screen.width - 1, initial_indent="    ", subsequent_indent="    ")
            screen.print(Text(indented, style=style))
    screen.print(f"{len(rows)} flavors; 'ndcg-ml flavors NAME' has every switch of one in words.")


def _flavor_document(flavor: Flavor, mirror: Mirror | None) -> dict[str, Any]:
    def value(name: str) -> Any:
        switch = getattr(flavor, name)
        return "nan" if isinstance(switch, float) and math.isnan(switch) else switch

    return {
        "name": mirror and mirror.name,
        "library": mirror and mirror.library,
        "verified": mirror and mirror.verified,
        "unusual": mirror and mirror.unusual,
        "differs": [str(entry) for entry in declared(mirror.name)] if mirror else [],
        "alias_of": mirror and mirror.alias_of,
        "text": str(flavor),
        "switches": {field.name: value(field.name) for field in fields(flavor)},
    }


def _short(value: object) -> str:
    words = {"linear": "y", "exponential": "2^y-1", "log2": "log2(r+1)", "reciprocal": "r", "jarvelin": "log2(r)"}
    return "-" if value is None else words.get(str(value), switch_text(value))


# -- eval -------------------------------------------------------------------------------------------------------------

_EVAL_JSON = """\
\b
Examples:
  ndcg-ml eval --qrels qrels.txt --run run.txt -k 10 -k 100
  zcat run.gz | ndcg-ml eval --qrels qrels.txt --run - --per-query
  ndcg-ml eval --labels test.txt --scores scores.txt --flavor lightgbm -k 5 --html report.html
  ndcg-ml eval --table ratings.csv --query user --label rating --score s -k 10 --by country

\b
--json prints
  values       [{k, flavor, ndcg, n_empty, judged}], one per cut-off; k is null for no cut-off, ndcg is null
               for nan; judged, the mean fraction of the first k retrieved documents that is judged, is
               null for labels and tables
  n_queries    queries that were evaluated
  n_documents  documents that were ranked
  queries      qrels, run or both; null for labels and tables
  qrels_only   topics missing from the run
  run_only     topics missing from the qrels
  n_unanswered topics in which nothing is retrieved; null for labels and tables
  n_excluded   documents that --exclude took out of the run; null without it
  slices       with --by: [{column, label, k, n_queries, n_empty, share, ndcg, low, high, difference}],
               those first that differ most from the other queries
  per_query    null without --per-query, else [{qid, n_docs, n_judged, n_relevant, tied, values}] with
               values [{k, ndcg, dcg, idcg, empty, judged}], ndcg null where the mean leaves the query out
"""


@ndcg_ml.command("eval", epilog=_EVAL_JSON + IDS_IN_JSON)
@takes_data
@flavor_option("trec_eval for a run, sklearn for labels and tables")
@click.option(
    "-k",
    "ks",
    metavar="K",
    type=cut_off,
    multiple=True,
    help="A cut-off, or 'none'; may be repeated.  [default: the flavor's own]",
)
@click.option("--per-query", is_flag=True, help="List every query.")
@click.option(
    "--by",
    multiple=True,
    metavar="FILE|COLUMN",
    help="Evaluate slices too: a file with the id of a query and its label on each line, or a column of --table. May "
    "be repeated.",
)
@click.option(
    "--save",
    type=OUTPUT,
    help="Save the evaluation to this file, as a baseline for 'ndcg-ml gate', in the place of any older one.",
)
@html_option
@digits_option
@json_option
def evaluate(
    data: Inputs,
    flavor: Flavor | None,
    ks: Sequence[tuple[int | None]],
    per_query: bool,
    by: Sequence[str],
    save: str | None,
    html: str | None,
    digits: int,
    as_json: bool,
) -> None:
    """Evaluate a run, or scores with labels.

    The data are --qrels with --run, --labels with --scores, or --table. A file may be gzipped; - is standard input.
    """
    refuse_overwriting()
    chosen = data.flavor if flavor is None else flavor
    cut_offs = tuple(dict.fromkeys(k for (k,) in ks)) or (chosen.k,)
    result = data.evaluate(chosen, cut_offs)
    if by:
        result = data.sliced(result, by)
    if save is not None:
        try:
            result.save(save, qrels=None if data.qrels == "-" else data.qrels)
        except (TypeError, ValueError) as error:
            raise BadInput(str(error)) from error
    if html is not None:
        result.to_html(html, command=command_line(), digits=digits)
    if as_json:
        print_json(_eval_document(result, per_query))
        return
    screen = Screen(digits)
    if per_query:
        _show_queries(screen, result)
        screen.print()
    _show_means(screen, result)
    if result.slices is not None:
        screen.print()
        screen.table(result.slices._table(digits))
    for name, file in (("report", html), ("saved", save)):
        if file is not None:
            screen.fact(name, screen.text(file))


def _show_means(screen: Screen, result: Evaluation[ByK]) -> None:
    assert isinstance(result.n_empty, dict)
    extra = result._extra_columns()
    rows = [
        [f"ndcg{at_cutoff(k)}", screen.number(value), str(result.n_empty[k])]
        + [screen.number(column[k]) for column in extra.values()]
        for k, value in result.value.items()
    ]
    screen.table(Table(["metric", "value", "empty", *extra], rows))
    screen.print()
    screen.fact("queries", f"{result.n_queries}; one that is empty {empty_in_words(result.flavor)}")
    screen.fact("documents", f"{int(result.per_query.n_docs.sum())} ranked")
    if isinstance(result, RunEvaluation):
        if result.n_unanswered:
            screen.fact("unanswered", f"{result.n_unanswered} topics, in which nothing is retrieved")
        if result.n_excluded is not None:
            screen.fact("excluded", f"{result.n_excluded} retrieved documents")
        for _, other, ids, fate in result.one_sided():
            words = f"{len(ids)} topics" if len(ids) != 1 else f"1 topic ({screen.text(ids[0])})"
            screen.fact(f"not in {other}", f"{words}, {fate}" if len(ids) else "no topic")
    screen.flavor(result.flavor.replace(k=next(iter(result.value)) if len(result.value) == 1 else None))


def _show_queries(screen: Screen, result: Evaluation[ByK]) -> None:
    ks, table = list(result.value), result.per_query
    extra = list(result._extra_columns()) if len(ks) == 1 else []
    counts = {"documents": table.n_docs, "judged": table.n_judged, "relevant": table.n_relevant, "tied": table.tied}
    rows = [
        [str(qid), *map(screen.number, table.ndcg[i]), *(str(column[i]) for column in counts.values())]
        + [screen.number(table[name][i, 0]) for name in extra]
        for i, qid in enumerate(table.qid.tolist())
    ]
    head = ["qid", *(f"ndcg{at_cutoff(k)}" for k in ks), *counts, *(f"{name}{at_cutoff(ks[0])}" for name in extra)]
    screen.table(Table(head, rows))


def _eval_document(result: Evaluation[ByK], per_query: bool) -> dict[str, Any]:
    document = result.to_dict(per_query)
    if isinstance(result, RunEvaluation):
        return document
    # Every key is there whatever the data are, so that a program reads one form.
    for each in (*document["values"], *(value for query in document["per_query"] or () for value in query["values"])):
        each["judged"] = None
    return {**document, "queries": None, "qrels_only": [], "run_only": [], "n_unanswered": None, "n_excluded": None}


# -- explain ----------------------------------------------------------------------------------------------------------

_EXPLAIN_JSON = """\
\b
Example:
  ndcg-ml explain --a trec_eval --b lightgbm[unjudged=zero] -k 10 --qrels qrels.txt --run run.txt

\b
--json prints
  flavor_a, flavor_b   the flavors as text
  value_a, value_b     their values
  difference           value_b - value_a
  method               shapley; or order, one switch after another, where there are too many
  parts                [{switches, a, b, contribution}], largest first
  n_queries            queries in the data
  queries              [{qid, contribution, value_a, value_b, n_docs, tied, empty_a, empty_b}], the --top
                       that contribute most; a value is null where the mean leaves the query out
"""


@ndcg_ml.command(epilog=_EXPLAIN_JSON + IDS_IN_JSON)
@takes_data
@click.option("--a", "a", type=flavor_text, metavar="FLAVOR", required=True, help="A preset or a flavor's text.")
@click.option("--b", "b", type=flavor_text, metavar="FLAVOR", required=True, help="Another flavor.")
@click.option(
    "-k",
    "at",
    metavar="K",
    type=cut_off,
    help="One cut-off for both, or 'none'.  [default: each flavor's own, as one more switch]",
)
@click.option("--top", type=click.IntRange(0), default=10, show_default=True, help="How many queries to list.")
@digits_option
@json_option
def explain(
    data: Inputs, a: Flavor, b: Flavor, at: tuple[int | None] | None, top: int, digits: int, as_json: bool
) -> None:
    """Explain why two flavors disagree.

    The parts sum exactly to the difference: each is the effect of its switch, averaged over the orders in which the
    switches can be changed. The data are --qrels with --run, --labels with --scores, or --table, as for eval.
    """
    arguments = data.arguments(a, b)
    with data.refusals():
        from ndcg_ml.explain import explain_difference

        result = explain_difference(a, b, **arguments, k=... if at is None else at[0], top=top)
    if as_json:
        print_json(result.to_dict())
    else:
        _show_explanation(Screen(digits), result)


def _show_explanation(screen: Screen, result: Explanation) -> None:
    for name, flavor, value in (("a", result.flavor_a, result.value_a), ("b", result.flavor_b, result.value_b)):
        screen.flavor(flavor, f"{name}   {screen.number(value)}")
    screen.print()
    screen.table(result._switch_table(screen.digits))
    screen.print()
    from ndcg_ml.explain import METHODS, by_effect

    idle = by_effect(result.parts)[1]
    if idle:
        screen.fact("no effect", ", ".join(idle))
    if result.parts:
        screen.fact("method", METHODS[result.method])
    if result.queries:
        table = result._query_table(screen.digits)
        caption = f"the {len(result.queries)} of {result.n_queries} queries that contribute most"
        screen.print()
        screen.table(replace(table, head=("qid", *table.head[1:]), caption=caption))


# -- identify ---------------------------------------------------------------------------------------------------------

# A number with more decimals is a float in full, not one rounded for print.


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


@ndcg_ml.command(epilog=_IDENTIFY_JSON)
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
        if digits is None:
            digits = min(17, (_MOST_DECIMALS if rounded is None else rounded) + 2)
        _show_matches(Screen(digits), result, value, top, data.queries or "qrels" if data.qrels else None)
    if not result.matches:
        raise click.exceptions.Exit(1)


def _show_matches(screen: Screen, result: Identification, value: Decimal, top: int, queries: str | None) -> None:
    screen.print(f"{value}: {result.count_text()}")
    screen.print()
    listed = result.matches or result.nearest
    rows = [(match.name, screen.number(match.value), str(match.n_others)) for match in listed[:top]]
    screen.table(Table(("flavor", "value", "others"), rows))
    if len(listed) > top:
        screen.print(f"and {len(listed) - top} more")
    if listed:
        screen.print()
        _show_first(screen, result, listed[0])
    screen.fact("chance", result.chance_text())
    screen.fact("tried", result.tried_text())
    if queries is not None and not result.matches:
        screen.fact("topics", f"those of --queries {queries}; VALUE may be a mean over others")
    for line in result.not_tried_text():
        screen.fact("not tried", line)


def _show_first(screen: Screen, result: Identification, match: Match) -> None:
    """What is known about the first match."""
    screen.fact("others", "flavors with the same value, which these data cannot tell apart")
    screen.flavor(match.flavor, "first")
    others = [name for name in match.presets if name != match.name]
    if others:
        screen.fact("same value", ", ".join(others))
    for line in result.unreliable_text(match):
        screen.fact("beware", line)
    for line in result.free_text(match):
        screen.fact("", line)
