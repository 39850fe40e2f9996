"""Any sequence of updates, merges, resets, copies and casts gives the number of the queries seen, or refuses."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

import copy
import math
import pickle
from contextlib import nullcontext
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from strategies import examples
from torch_batches import elsewhere

from ndcg_ml import Flavor, PartialEvaluation, evaluate_batches, evaluate_part, ndcg_score
from ndcg_ml.torch import NDCG

FLAVORS = (
    "sklearn",
    "lightgbm",
    Flavor(gain="exponential", aggregate="micro"),
    Flavor(empty="skip", ties="first"),
    Flavor(ideal="local", ties="worst", empty=1.0),
)
CUTOFFS: Any = (None, 2, (1, 3, None))

Query = tuple[int, tuple[float, ...], tuple[float, ...]]
"""Id, grades, scores."""


@st.composite
def new_queries(draw: st.DrawFn) -> list[tuple[tuple[float, ...], tuple[float, ...]]]:
    queries = []
    for _ in range(draw(st.integers(0, 3))):
        size = draw(st.integers(1, 5))
        grades = draw(st.lists(st.sampled_from([0.0, 0.0, 1.0, 2.0, 4.0]), min_size=size, max_size=size))
        scores = draw(st.lists(st.sampled_from([-1.0, 0.25, 0.5, 2.0]), min_size=size, max_size=size))
        queries.append((tuple(grades), tuple(scores)))
    return queries


def rows(queries: list[Query]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Grades, scores and ids, one entry per row."""
    grades = np.array([g for _, grades, _ in queries for g in grades])
    scores = np.array([s for *_, scores in queries for s in scores])
    return grades, scores, np.repeat([i for i, *_ in queries], [len(g) for _, g, _ in queries]).astype(np.int64)


def expected(queries: list[Query], flavor: Any, k: Any) -> Any:
    """The value of these queries, or None where there is none."""
    if not queries:
        return None
    grades, scores, qid = rows(queries)
    try:
        return ndcg_score(grades, scores, qid=qid, flavor=flavor, k=k)
    except ValueError:
        return None


class Tracks(RuleBasedStateMachine):
    """What was seen, beside the object that is to know it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Query] = []
        self.next_id = -3

    @initialize(flavor=st.sampled_from(FLAVORS), k=st.sampled_from(CUTOFFS))
    def choose(self, flavor: Any, k: Any) -> None:
        self.flavor, self.k = flavor, k
        self.begin()

    def begin(self) -> None:
        raise NotImplementedError

    def named(self, drawn: list[Any]) -> list[Query]:
        queries = [(self.next_id + i, *query) for i, query in enumerate(drawn)]
        self.next_id += len(drawn)
        return queries

    def check(self, value: Any) -> None:
        """`value` is a function, which may raise."""
        want = expected(self.seen, self.flavor, self.k)
        if want is None:
            with pytest.raises(ValueError, match=r"no query|nothing to average|relevant document"):
                value()
            return
        got = value()
        if not isinstance(want, dict):
            got, want = {self.k: got}, {self.k: want}
        for k, number in want.items():
            assert math.isclose(float(got[k]), number, rel_tol=1e-12, abs_tol=1e-13), (k, float(got[k]), number)


class PartMachine(Tracks):
    """``PartialEvaluation`` under merging, in every form in which a part is made and travels."""

    def begin(self) -> None:
        self.part = evaluate_batches([], flavor=self.flavor, k=self.k)

    def of(self, queries: list[Query]) -> PartialEvaluation:
        grades, scores, qid = rows(queries)
        return evaluate_part(grades, scores, qid=qid, flavor=self.flavor, k=self.k)

    @rule(drawn=new_queries(), before=st.booleans())
    def add(self, drawn: list[Any], before: bool) -> None:
        queries = self.named(drawn)
        self.seen += queries
        self.part = self.of(queries) + self.part if before else self.part + self.of(queries)

    @rule(drawn=new_queries(), at=st.lists(st.integers(0, 15), max_size=4))
    def stream(self, drawn: list[Any], at: list[int]) -> None:
        queries = self.named(drawn)
        self.seen += queries
        columns = rows(queries)
        ends = [0, *sorted(min(a, columns[0].size) for a in at), columns[0].size]
        batches: Any = [tuple(c[a:b] for c in columns) for a, b in pairwise(ends)]
        self.part += evaluate_batches(batches, flavor=self.flavor, k=self.k)

    @rule(several=st.lists(new_queries(), max_size=3))
    def merge(self, several: list[Any]) -> None:
        parts = []
        for drawn in several:
            queries = self.named(drawn)
            self.seen += queries
            parts.append(self.of(queries))
        self.part = PartialEvaluation.merge([*parts, self.part])

    @rule(form=st.sampled_from(["pickle", "copy"]))
    def travel(self, form: str) -> None:
        before = self.part
        if form == "pickle":
            self.part = pickle.loads(pickle.dumps(self.part))
        else:
            self.part = copy.deepcopy(self.part)
        assert self.part == before

    @precondition(lambda self: self.seen)
    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        again = self.of([data.draw(st.sampled_from(self.seen))])
        with pytest.raises(ValueError, match="must be entirely in one part"):
            self.part + again

    @invariant()
    def is_the_number_of_all(self) -> None:
        assert self.part.n_queries == len(self.seen)
        self.check(lambda: self.part.value)


class MetricMachine(Tracks):
    """``NDCG`` under updates in every form, and whatever happens to a module."""

    split = False

    def begin(self) -> None:
        self.metric = self.new()

    def new(self) -> NDCG:
        return NDCG(self.flavor, k=self.k, split_queries=self.split)

    def flat(self, metric: NDCG, queries: list[Query]) -> None:
        grades, scores, qid = map(torch.as_tensor, rows(queries))
        with torch.device("meta"):  # the default device, which is not that of the tensors
            metric.update(scores, grades, indexes=qid)

    @rule(drawn=new_queries())
    def update(self, drawn: list[Any]) -> None:
        queries = self.named(drawn)
        self.seen += queries
        if queries:
            self.flat(self.metric, queries)

    @rule(drawn=new_queries(), more=st.tuples(*[st.integers(0, 2)] * 2), by=st.booleans(), away=st.booleans())
    def update_padded(self, drawn: list[Any], more: tuple[int, int], by: bool, away: bool) -> None:
        queries = self.named(drawn)
        self.seen += queries
        shape = (len(queries) + more[0], max((len(grades) for _, grades, _ in queries), default=0) + more[1])
        grades, scores = torch.full(shape, math.nan), torch.full(shape, math.nan)
        mask = torch.zeros(shape, dtype=torch.bool)
        for row, (_, g, s) in enumerate(queries):
            grades[row, : len(g)], scores[row, : len(g)] = torch.tensor(g), torch.tensor(s)
            mask[row, : len(g)] = True
        blank = [-3, 10**9][: more[0]]  # ids of lists without documents: of the first query, and of none
        ids = torch.tensor([*(i for i, *_ in queries), *blank], dtype=torch.int64)
        with elsewhere() if away else nullcontext():
            (self.metric.update if by else self.metric)(scores, grades, indexes=ids, mask=mask)

    @rule(
        dtype=st.sampled_from([torch.bfloat16, torch.float16, torch.float64]), by=st.sampled_from(["to", "set_dtype"])
    )
    def cast(self, dtype: torch.dtype, by: str) -> None:
        getattr(self.metric, by)(dtype)

    @rule()
    def reset(self) -> None:
        self.metric.reset()
        self.seen = []

    @rule(form=st.sampled_from(["pickle", "copy", "clone"]))
    def travel(self, form: str) -> None:
        if form == "pickle":
            self.metric = pickle.loads(pickle.dumps(self.metric))
        else:
            self.metric = copy.deepcopy(self.metric) if form == "copy" else self.metric.clone()

    @rule(drawn=new_queries())
    def merge_state(self, drawn: list[Any]) -> None:
        queries = self.named(drawn)
        other = self.new()
        if queries:
            self.flat(other, queries)
        self.seen += queries
        self.metric.merge_state(other)

    @rule()
    def load_nothing(self) -> None:
        assert self.metric.state_dict() == {}

    @invariant()
    def is_the_number_of_all(self) -> None:
        with torch.device("meta"):
            self.check(self.metric.compute)


class WholeQueries(MetricMachine):
    """Sums alone: an id that comes twice is refused."""

    @precondition(lambda self: self.seen)
    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        metric = copy.deepcopy(self.metric)
        self.flat(metric, [data.draw(st.sampled_from(self.seen))])
        with pytest.raises(ValueError, match="split_queries=True"):
            metric.compute()


class SplitQueries(MetricMachine):
    """Rows are kept: a query may come in pieces, in any order."""

    split = True

    @precondition(lambda self: self.seen)
    @rule(data=st.data(), grade=st.sampled_from([0.0, 1.0, 4.0]), score=st.sampled_from([-1.0, 0.5, 3.0]))
    def more_of_a_query(self, data: st.DataObject, grade: float, score: float) -> None:
        at = data.draw(st.integers(0, len(self.seen) - 1))
        qid, grades, scores = self.seen[at]
        self.metric.update(torch.tensor([score]), torch.tensor([grade]), indexes=torch.tensor([qid]))
        self.seen[at] = (qid, (*grades, grade), (*scores, score))


# torchmetrics warns when compute is called before update, and the metric when there is no reset after it, as here.
pytestmark = [
    pytest.mark.filterwarnings("ignore:The ``compute`` method:UserWarning"),
    pytest.mark.filterwarnings("ignore::ndcg_ml.torch.EpochWarning"),
]
SETTINGS = settings(examples(40), stateful_step_count=12)
TestPartialEvaluation = PartMachine.TestCase
TestPartialEvaluation.settings = SETTINGS
TestWholeQueries = WholeQueries.TestCase
TestWholeQueries.settings = SETTINGS
TestSplitQueries = SplitQueries.TestCase
TestSplitQueries.settings = SETTINGS
