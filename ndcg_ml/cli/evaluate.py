"""``ndcg-ml eval``: NDCG of a run, or of scores, under any flavor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from ndcg_ml.cli.ids import IDS_IN_JSON
from ndcg_ml.cli.inputs import Inputs, takes_data
from ndcg_ml.cli.output import Screen, columns, finite, print_json
from ndcg_ml.cli.parameters import cut_off, digits_option, flavor_option, json_option
from ndcg_ml.evaluation import Evaluation, at_cutoff
from ndcg_ml.flavor import Flavor, empty_in_words
from ndcg_ml.runs import RunEvaluation, RunPerQuery

__all__ = ["evaluate"]

_EPILOG = (
    """\
\b
Examples:
  ndcg-ml eval --qrels qrels.txt --run run.txt -k 10 -k 100
  zcat run.gz | ndcg-ml eval --qrels qrels.txt --run - --per-query
  ndcg-ml eval --labels test.txt --scores scores.txt --flavor lightgbm -k 5

\b
--json prints
  values       [{k, flavor, ndcg, n_empty, judged}], one a cut-off; k is null for no cut-off, ndcg null for
               nan; judged, the mean fraction of the first k retrieved documents that is judged, is null
               for labels and tables
  n_queries    queries that were evaluated
  n_documents  documents that were ranked
  queries      qrels, run or both; null for labels and tables
  qrels_only   topics that the run lacks
  run_only     topics that the qrels lack
  per_query    null without --per-query, else [{qid, n_docs, n_judged, n_relevant, tied, values}] with
               values [{k, ndcg, dcg, idcg, empty, judged}], ndcg null where the mean leaves the query out

\b
"""
    + IDS_IN_JSON
)


@click.command("eval", epilog=_EPILOG)
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
@digits_option
@json_option
def evaluate(
    data: Inputs, flavor: Flavor | None, ks: Sequence[tuple[int | None]], per_query: bool, digits: int, as_json: bool
) -> None:
    """Evaluate a run, or scores with labels.

    The data are --qrels with --run, --labels with --scores, or --table. A file may be gzipped; - is standard input.
    """
    chosen = data.flavor if flavor is None else flavor
    cut_offs = tuple(dict.fromkeys(k for (k,) in ks)) or (chosen.k,)
    result = data.evaluate(chosen, cut_offs)
    if as_json:
        print_json(_document(result, per_query))
        return
    screen = Screen(digits)
    if per_query:
        _queries(screen, result)
        screen.print()
    _summary(screen, result)


def _by_k(result: Evaluation) -> list[tuple[int | None, float, int, float | None]]:
    assert isinstance(result.value, dict)
    assert isinstance(result.n_empty, dict)
    judged = result.judged if isinstance(result, RunEvaluation) else None
    return [
        (k, value, result.n_empty[k], judged[k] if isinstance(judged, dict) else None)
        for k, value in result.value.items()
    ]


def _summary(screen: Screen, result: Evaluation) -> None:
    rows = _by_k(result)
    of_run = isinstance(result, RunEvaluation)
    table = columns(screen, "metric", "value", "empty", *["judged"] * of_run)
    for k, value, n_empty, judged in rows:
        table.add_row(f"ndcg{at_cutoff(k)}", screen.number(value), str(n_empty), *[screen.number(judged)] * of_run)
    screen.print(table)
    screen.print()
    screen.fact("queries", f"{result.n_queries}; one that is empty {empty_in_words(result.flavor)}")
    screen.fact("documents", f"{int(result.per_query.n_docs.sum())} ranked")
    if isinstance(result, RunEvaluation):
        for name, ids, fate in (
            ("not in run", result.qrels_only, {"qrels": "counted as retrieving nothing"}),
            ("not in qrels", result.run_only, {"run": "counted as unjudged"}),
        ):
            words = f"{len(ids)} topics" if len(ids) != 1 else f"1 topic ({screen.text(ids[0])})"
            screen.fact(name, f"{words}, {fate.get(result.queries, 'left out')}" if len(ids) else "no topic")
    screen.flavor(result.flavor.replace(k=rows[0][0] if len(rows) == 1 else None))


def _queries(screen: Screen, result: Evaluation) -> None:
    ks = [k for k, *_ in _by_k(result)]
    per_query = result.per_query
    judged = per_query.judged if isinstance(per_query, RunPerQuery) else None
    shows_judged = judged is not None and len(ks) == 1
    headings = ("documents", "judged", "relevant", "tied")
    table = columns(
        screen, "qid", *(f"ndcg{at_cutoff(k)}" for k in ks), *headings, *[f"judged{at_cutoff(ks[0])}"] * shows_judged
    )
    for i, qid in enumerate(per_query.qid.tolist()):
        counts = (column[i] for column in (per_query.n_docs, per_query.n_judged, per_query.n_relevant, per_query.tied))
        table.add_row(
            screen.text(qid),
            *(screen.number(value) for value in per_query.ndcg[i]),
            *map(str, counts),
            *([screen.number(judged[i, 0])] if judged is not None and shows_judged else []),
        )
    screen.print(table)


def _document(result: Evaluation, per_query: bool) -> dict[str, Any]:
    run = result if isinstance(result, RunEvaluation) else None
    return {
        "values": [
            {
                "k": k,
                "flavor": str(result.flavor.replace(k=k)),
                "ndcg": finite(value),
                "n_empty": n_empty,
                "judged": finite(judged),
            }
            for k, value, n_empty, judged in _by_k(result)
        ],
        "n_queries": result.n_queries,
        "n_documents": int(result.per_query.n_docs.sum()),
        "queries": run and run.queries,
        "qrels_only": run.qrels_only.tolist() if run else [],
        "run_only": run.run_only.tolist() if run else [],
        "per_query": _rows(result) if per_query else None,
    }


def _rows(result: Evaluation) -> list[dict[str, Any]]:
    table = result.per_query
    ks = [k for k, *_ in _by_k(result)]
    judged = table.judged if isinstance(table, RunPerQuery) else None
    return [
        {
            "qid": qid,
            "n_docs": int(table.n_docs[i]),
            "n_judged": int(table.n_judged[i]),
            "n_relevant": int(table.n_relevant[i]),
            "tied": int(table.tied[i]),
            "values": [
                {
                    "k": k,
                    "ndcg": finite(table.ndcg[i, at]),
                    "dcg": finite(table.dcg[i, at]),
                    "idcg": finite(table.idcg[i, at]),
                    "empty": bool(table.empty[i, at]),
                    "judged": None if judged is None else finite(judged[i, at]),
                }
                for at, k in enumerate(ks)
            ],
        }
        for i, qid in enumerate(table.qid.tolist())
    ]
