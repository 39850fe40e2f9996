"""Text of a caller in every field that a result prints: one line, no control character, no markup of its own."""

from __future__ import annotations

import json
import re

import pytest

from ndcg_ml import Flavor, compare, evaluate, evaluate_run, explain_difference
from ndcg_ml._decide.gate import Gate, gate

HOSTILE = [
    "two\nlines\r\n**not worse**",
    "a|b\n\n![picture](https://example.org/x.png)",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\x1b]0;title\x07",
    "\u202eturned\x85\u2028",
    "[link](https://example.org) ~~gone~~ ~also gone~",
    "https://example.org www.example.org http://a.example/?x=1",
]


def results(text):
    """Results that hold the text in each field that a caller can name, and errors that quote it."""
    qrels = {f"{text} {i}": {f"{text} a": 2, f"{text} b": 1, f"{text} c": 0} for i in range(12)}
    good = {topic: dict(zip(labels, (3.0, 2.0, 1.0), strict=True)) for topic, labels in qrels.items()}
    bad = {topic: {document: -score for document, score in run.items()} for topic, run in good.items()}
    for run in list(bad.values())[:6]:
        run[f"{text} unjudged"] = 9.0
    names, topics = [f"{text} old", f"{text} new"], list(qrels)
    by = {text: [text if i % 2 else f"{text} other" for i in range(12)]}
    old, new = (evaluate_run(qrels, run, k=2, by=by) for run in (good, bad))
    comparison = compare(old, new, names=names, by=by, margin=0.01, unjudged="accept", seed=0)
    guarded = gate(old, new, margin=0.01, by={text: dict(zip(topics, by[text], strict=True))})
    guarded_less = gate(
        evaluate_run({**qrels, f"{text} gone": {"a": 1}}, good, k=2), new, margin=0.01, on_change="drop"
    )
    rows = [([2, 0, 1], [1, 2, 3])] * 12
    y_true, y_score = ([x for row in rows for x in row[side]] for side in (0, 1))
    qid = [topic for topic in topics for _ in range(3)]
    return {
        "evaluation": evaluate(y_true, y_score, qid=qid, by={text: [by[text][i // 3] for i in range(36)]}),
        "run": old,
        "slices": old.slices,
        "comparison": comparison,
        "uneven": compare(old, new, names=names, seed=0, unjudged="accept"),
        "comparison's slices": comparison.slices,
        "gate": guarded,
        "gate with changes": guarded_less,
        "to judge": comparison.judge_next(5),
        "explanation": explain_difference("sklearn", "lightgbm", y_true, y_score, qid=qid),
    }


def errors(text):
    """Messages of errors that quote the text."""
    for call in (
        lambda: Flavor.parse(text),
        lambda: Flavor(gain=text),
        lambda: Flavor.preset(text),
        lambda: evaluate([1, 0], [1, 2], flavor=text),
        lambda: evaluate([1, text], [1, 2]),
        lambda: evaluate_run(text, {"q": {"d": 1.0}}),
        lambda: evaluate_run({text: {text: text}}, {text: {"d": 1.0}}),
        lambda: compare(evaluate([1, 0], [1, 2]), evaluate([1, 0], [1, 2]), names=[text, text]),
        lambda: evaluate([1, 0], [1, 2], by={text: 3}),
    ):
        with pytest.raises((ValueError, TypeError, OSError, KeyError)) as raised:
            call()
        yield str(raised.value)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_field_of_a_caller_breaks_a_line_or_is_read_as_markup(text):
    checked = 0
    plain, hostile = results("plain"), results(text)
    for name, result in hostile.items():
        for show in (texts, markdown, html):
            for one, expected in zip(show(result), show(plain[name]), strict=True):
                assert all(line.isprintable() for line in one.split("\n")), name
                assert one.count("\n") == expected.count("\n"), name
                if show is markdown:
                    one, expected = (re.sub(r"\\.", "", page) for page in (one, expected))
                    assert not re.search(r"\]\(|<[a-z]|~|[a-z]://|www\.", one), name
                    assert [one.count(mark) for mark in "*|"] == [expected.count(mark) for mark in "*|"], name
                if show is html:
                    assert not re.search(r"<(script|img)", one), name
                checked += 1
        if hasattr(result, "to_dict"):
            dumped = json.dumps(result.to_dict(), allow_nan=False)
            assert dumped.isascii()
            assert dumped.isprintable()
            checked += 1
    for message in errors(text):
        assert message.isprintable(), message
        checked += 1
    assert checked >= 42


def texts(result):
    return [result.sentence(), *result.notes()] if isinstance(result, Gate) else [str(result), repr(result)]


def markdown(result):
    if isinstance(result, Gate):
        return [result.markdown()]
    return [result.to_markdown()] if hasattr(result, "to_markdown") else []


def html(result):
    return [result._repr_html_()] if hasattr(result, "_repr_html_") else []
