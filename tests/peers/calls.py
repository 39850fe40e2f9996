"""How each library is asked for its NDCG: one function per library, for the recorder and for the live tests.

A function takes a run and judgments, or scores and labels, and returns the library's number with the value of each
query where the library has one. A library that knows no average over queries is averaged here, as its documentation
tells its users to. Nothing of a library is imported before its function is called. Functions that import
``golden.lifted`` read the one function out of a package whose import would bring a whole framework; see
``golden/record.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean
from types import SimpleNamespace
from typing import Any

import numpy as np

Run = dict[str, list[tuple[str, float]]]
"""Documents with scores by query, in the order in which they were retrieved; a document may come twice."""
Qrels = dict[str, dict[str, float]]
Lists = list[list[float]]
Answer = tuple[float, dict[str, float] | list[float] | None]
"""The number, and the values of the queries."""


def ranked(run: Run, qid: str, k: int | None = None) -> list[str]:
    """Ids from the highest score down, tied ones as they were retrieved; nothing for a query that the run lacks."""
    return [doc for doc, _ in sorted(run.get(qid, ()), key=lambda hit: -hit[1])][:k]


def relevant(qrels: Qrels, qid: str) -> list[str]:
    return [doc for doc, grade in qrels.get(qid, {}).items() if grade > 0]


def numbered(run: Run, qrels: Qrels) -> dict[str, int]:
    """A number for each document, for libraries whose items are numbers."""
    named = [doc for hits in run.values() for doc, _ in hits] + [doc for docs in qrels.values() for doc in docs]
    return {doc: number for number, doc in enumerate(dict.fromkeys(named))}


def mean_of(values: dict[str, float]) -> Answer:
    return fmean(values.values()), values


# -- retrieval-augmented generation -------------------------------------------------------------------------------


def mlflow(run: Run, qrels: Qrels, k: int) -> Answer:
    import mlflow.metrics
    import pandas as pd

    found = pd.Series([ranked(run, qid) for qid in qrels])
    value = mlflow.metrics.ndcg_at_k(k).eval_fn(found, pd.Series([relevant(qrels, qid) for qid in qrels]))
    return value.aggregate_results["mean"], dict(zip(qrels, value.scores, strict=True))


def llama_index(run: Run, qrels: Qrels, k: int | None) -> Answer:
    from llama_index.core.evaluation.retrieval.metrics import NDCG

    return mean_of(
        {
            qid: NDCG().compute(expected_ids=relevant(qrels, qid), retrieved_ids=ranked(run, qid, k)).score
            for qid in qrels
        }
    )


def haystack(run: Run, qrels: Qrels, k: int | None, *, graded: bool = True) -> Answer:
    from haystack import Document
    from haystack.components.evaluators import DocumentNDCGEvaluator

    truth = [
        [Document(id=doc, score=grade if graded else None) for doc, grade in docs.items() if graded or grade > 0]
        for docs in qrels.values()
    ]
    found = [[Document(id=doc) for doc in ranked(run, qid, k)] for qid in qrels]
    said = DocumentNDCGEvaluator(document_comparison_field="id").run(truth, found)
    return said["score"], dict(zip(qrels, said["individual_scores"], strict=True))


def phoenix(run: Run, qrels: Qrels, k: int | None) -> Answer:
    from peers.golden.lifted import module

    metrics = module("arize-phoenix", "phoenix/metrics/retrieval_metrics.py").RetrievalMetrics
    return mean_of({qid: metrics([qrels[qid].get(doc, 0) for doc in ranked(run, qid)]).ndcg(k) for qid in qrels})


def pyvespa(run: Run, qrels: Qrels, k: int, *, graded: bool = True) -> Answer:
    from vespa.evaluation import VespaEvaluator

    # Grades must lie between 0 and 1.
    top = max(1.0, *(grade for docs in qrels.values() for grade in docs.values()))
    truth: dict[str, Any] = {
        qid: {doc: grade / top for doc, grade in docs.items()} if graded else set(relevant(qrels, qid))
        for qid, docs in qrels.items()
    }
    # It looks at queries with a judgment only.
    truth = {qid: docs for qid, docs in truth.items() if docs}
    evaluator = VespaEvaluator(
        queries=dict.fromkeys(truth, "?"),
        relevant_docs=truth,
        vespa_query_fn=lambda text, top_k: {},
        app=SimpleNamespace(),
        ndcg_at_k=[k],
    )
    hits = [[(doc, 0.0) for doc in ranked(run, qid)] for qid in evaluator.queries_ids]
    return evaluator._compute_metrics(hits)[f"ndcg@{k}"], None


def trulens(run: Run, qrels: Qrels, k: int | None) -> Answer:
    from trulens.feedback import GroundTruthAgreement
    from trulens.feedback.llm_provider import LLMProvider

    class NoModel(LLMProvider):  # type: ignore[misc]
        """It must have one, which these measures do not ask."""

        def _create_chat_completion(self, *args: Any, **kwargs: Any) -> str:
            raise NotImplementedError

    golden = [
        {
            "query": qid,
            "expected_response": "",
            "expected_chunks": [{"text": doc, "expect_score": grade} for doc, grade in docs.items()],
        }
        for qid, docs in qrels.items()
    ]
    agreement = GroundTruthAgreement(golden, provider=NoModel(model_engine="none"))
    values = {}
    for qid in qrels:
        hits = run.get(qid, [])
        value = agreement.ndcg_at_k(qid, [doc for doc, _ in hits], [score for _, score in hits], k)
        values[qid] = float(value)
    return mean_of(values)


def azure_ai_evaluation(run: Run, qrels: Qrels, k: int) -> Answer:
    from azure.ai.evaluation import DocumentRetrievalEvaluator

    grades = [grade for docs in qrels.values() for grade in docs.values()]
    evaluator = DocumentRetrievalEvaluator(ground_truth_label_min=0, ground_truth_label_max=max(1, *grades))
    # k is fixed at 3. It is an attribute, and its thresholds are by name.
    evaluator.k = k
    evaluator._threshold_metrics |= {f"ndcg@{k}": 0.5, f"xdcg@{k}": 50.0}
    return mean_of(
        {
            qid: float(
                evaluator(
                    retrieval_ground_truth=[
                        {"document_id": doc, "query_relevance_label": grade} for doc, grade in docs.items()
                    ],
                    retrieved_documents=[{"document_id": doc, "relevance_score": s} for doc, s in run.get(qid, [])],
                )["document_retrieval"]
            )
            for qid, docs in qrels.items()
        }
    )


def autorag(run: Run, qrels: Qrels, k: int | None) -> Answer:
    from peers.golden.lifted import functions

    ndcg = functions("AutoRAG", "autorag/evaluation/metric/retrieval.py", "retrieval_ndcg").retrieval_ndcg
    return mean_of(
        {
            qid: float(ndcg(SimpleNamespace(retrieval_gt=[relevant(qrels, qid)], retrieved_ids=ranked(run, qid, k))))
            for qid in qrels
        }
    )


# -- embeddings -----------------------------------------------------------------------------------------------------


def sentence_transformers(run: Run, qrels: Qrels, k: int) -> Answer:
    from sentence_transformers.evaluation import InformationRetrievalEvaluator

    evaluator = InformationRetrievalEvaluator(
        queries=dict.fromkeys(qrels, ""),
        corpus=dict.fromkeys(numbered(run, qrels), ""),
        relevant_docs={qid: set(relevant(qrels, qid)) for qid in qrels},
        ndcg_at_k=[k],
    )
    hits = [[{"corpus_id": doc, "score": s} for doc, s in run.get(qid, [])] for qid in evaluator.queries_ids]
    return float(evaluator.compute_metrics(hits)["ndcg@k"][k]), None


def _mappings(run: Run) -> dict[str, dict[str, float]]:
    return {qid: dict(hits) for qid, hits in run.items()}


def mteb(run: Run, qrels: Qrels, k: int) -> Answer:
    from mteb._evaluators.retrieval_metrics import calculate_retrieval_scores

    return calculate_retrieval_scores(_mappings(run), qrels, [k]).ndcg[f"NDCG@{k}"], None


def beir(run: Run, qrels: Qrels, k: int) -> Answer:
    from peers.golden.lifted import functions

    retrieval = functions("beir", "beir/retrieval/evaluation.py", "EvaluateRetrieval").EvaluateRetrieval
    return retrieval.evaluate(qrels, _mappings(run), [k])[0][f"NDCG@{k}"], None


def flagembedding(run: Run, qrels: Qrels, k: int) -> Answer:
    from peers.golden.lifted import functions

    evaluate = functions("FlagEmbedding", "FlagEmbedding/abc/evaluation/utils.py", "evaluate_metrics").evaluate_metrics
    return evaluate(qrels, _mappings(run), [k])[0][f"NDCG@{k}"], None


# -- recommender systems --------------------------------------------------------------------------------------------


def rectools(run: Run, qrels: Qrels, k: int, *, achievable: bool = False) -> Answer:
    import pandas as pd
    from rectools import Columns
    from rectools.metrics import NDCG

    number = numbered(run, qrels)
    found = [(int(qid), number[doc], rank) for qid in run for rank, doc in enumerate(ranked(run, qid), start=1)]
    truth = [(int(qid), number[doc]) for qid in qrels for doc in relevant(qrels, qid)]
    metric = NDCG(k=k, divide_by_achievable=achievable)
    values = metric.calc_per_user(
        pd.DataFrame(found, columns=[Columns.User, Columns.Item, Columns.Rank]),
        pd.DataFrame(truth, columns=[Columns.User, Columns.Item]),
    )
    return float(values.mean()), {str(user): float(value) for user, value in values.items()}


def lenskit(run: Run, qrels: Qrels, k: int | None, *, gain: str | None = None) -> Answer:
    from lenskit.data import ItemList, ItemListCollection
    from lenskit.metrics import NDCG, RunAnalysis

    found, truth = ItemListCollection(["user_id"]), ItemListCollection(["user_id"])
    for qid, docs in qrels.items():
        wanted = list(docs) if gain else relevant(qrels, qid)
        fields = {gain: np.array([docs[doc] for doc in wanted], dtype=float)} if gain else {}
        truth.add(ItemList(item_ids=np.array(wanted, dtype=str), **fields), user_id=qid)
        if qid in run:
            found.add(ItemList(item_ids=np.array(ranked(run, qid), dtype=str), ordered=True), user_id=qid)
    result = RunAnalysis(NDCG(k, gain=gain)).measure(found, truth)
    [mean] = result.list_summary()["mean"]
    return float(mean), None


def replay(run: Run, qrels: Qrels, k: int) -> Answer:
    import pandas as pd
    from replay.metrics import NDCG, PerUser

    found = pd.DataFrame(
        [(qid, doc, s) for qid, hits in run.items() for doc, s in hits], columns=["query_id", "item_id", "rating"]
    )
    truth = pd.DataFrame([(qid, doc) for qid in qrels for doc in relevant(qrels, qid)], columns=["query_id", "item_id"])
    return NDCG(k)(found, truth)[f"NDCG@{k}"], NDCG(k, mode=PerUser())(found, truth)[f"NDCG-PerUser@{k}"]


def implicit(run: Run, qrels: Qrels, k: int) -> Answer:
    from implicit.evaluation import ndcg_at_k
    from scipy.sparse import csr_matrix

    number, users = numbered(run, qrels), list(qrels)
    ids = np.full((len(users), k), -1, dtype=np.int32)
    rows, columns = [], []
    for row, qid in enumerate(users):
        hits = ranked(run, qid, k)
        ids[row, : len(hits)] = [number[doc] for doc in hits]
        wanted = relevant(qrels, qid)
        rows += [row] * len(wanted)
        columns += [number[doc] for doc in wanted]
    truth = csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(users), len(number) + 1))
    # One item that nobody wants: it divides by their number.
    model = SimpleNamespace(recommend=lambda batch, rated, N: (ids[batch], None))
    return float(ndcg_at_k(model, csr_matrix(truth.shape), truth, K=k, show_progress=False)), None


def cornac(run: Run, qrels: Qrels, k: int | None) -> Answer:
    from cornac.metrics import NDCG

    number = numbered(run, qrels)
    values = {}
    for qid in qrels:
        wanted = np.array([number[doc] for doc in relevant(qrels, qid)])
        if wanted.size:  # ranking_eval() leaves the other users out
            found = np.array([number[doc] for doc in ranked(run, qid)], dtype=int)
            values[qid] = float(NDCG(-1 if k is None else k).compute(gt_pos=wanted, pd_rank=found))
    return sum(values.values()) / len(values), values


def librecommender(run: Run, qrels: Qrels, k: int) -> Answer:
    from peers.golden.lifted import functions

    number = numbered(run, qrels)
    lib = functions("LibRecommender", "libreco/evaluation/metrics.py", "ndcg_at_k", "listwise_scores")
    found = {qid: np.array([number[doc] for doc in ranked(run, qid, k)], dtype=int) for qid in qrels}
    truth = {qid: np.array([number[doc] for doc in relevant(qrels, qid)], dtype=int) for qid in qrels}
    values = {qid: float(lib.ndcg_at_k(truth[qid], found[qid], k)) for qid in qrels}
    return float(lib.listwise_scores(lib.ndcg_at_k, truth, found, list(qrels), k)), values


def elliot(run: Run, qrels: Qrels, k: int, *, threshold: float = 1) -> Answer:
    from peers.golden.lifted import elliot_ndcg

    recommended = {qid: [(doc, 0.0) for doc in ranked(run, qid)] for qid in run if qid in qrels}
    metric = elliot_ndcg(recommended, qrels, k, threshold)
    values = {qid: float(value) for qid, value in metric.eval_user_metric().items()}
    return float(metric.eval()), values


def evidently(run: Run, qrels: Qrels, k: int) -> Answer:
    """Rows of what was retrieved: it knows no other documents."""
    import pandas as pd
    from evidently.legacy.metrics import NDCGKMetric
    from evidently.legacy.pipeline.column_mapping import ColumnMapping, RecomType
    from evidently.legacy.report import Report

    rows = [(qid, doc, s, qrels[qid].get(doc, 0)) for qid in qrels for doc, s in run.get(qid, [])]
    report = Report(metrics=[NDCGKMetric(k=k)])
    mapping = ColumnMapping(
        recommendations_type=RecomType.SCORE, target="target", prediction="prediction", item_id="item", user_id="user"
    )
    data = pd.DataFrame(rows, columns=["user", "item", "prediction", "target"])
    report.run(reference_data=None, current_data=data, column_mapping=mapping)
    return float(report.as_dict()["metrics"][0]["result"]["current_value"]), None


def recpack(run: Run, qrels: Qrels, k: int) -> Answer:
    """Scores that fall with the rank: its matrices have no order of their own, and drop a score of 0."""
    from recpack.metrics import NDCGK
    from scipy.sparse import csr_matrix

    number, users = numbered(run, qrels), list(qrels)
    shape = len(users), len(number)
    truth, found = np.zeros(shape), np.zeros(shape)
    for row, qid in enumerate(users):
        truth[row, [number[doc] for doc in relevant(qrels, qid)]] = 1
        hits = ranked(run, qid)
        found[row, [number[doc] for doc in hits]] = np.arange(len(hits), 0, -1)
    metric = NDCGK(k)
    metric.calculate(csr_matrix(truth), csr_matrix(found))
    table = zip(metric.results["user_id"], metric.results["score"], strict=True)
    return float(metric.value), {users[row]: float(value) for row, value in table}


def rankereval(run: Run, qrels: Qrels, k: int | None, *, scaling: str = "identity", log_base: str = "e") -> Answer:
    vars(np).setdefault("NaN", np.nan)  # NumPy 2 dropped it
    from rankereval import NDCG, NumericLabels, Rankings

    number = numbered(run, qrels)
    truth = np.zeros((len(qrels), len(number)), dtype=np.float32)
    for row, docs in enumerate(qrels.values()):
        for doc, grade in docs.items():
            truth[row, number[doc]] = grade
    labels = NumericLabels.from_matrix(truth)
    found = Rankings.from_ranked_indices([[number[doc] for doc in ranked(run, qid)] for qid in qrels])
    metric = NDCG(k, relevance_scaling=scaling, log_base=log_base)
    values = dict(zip(qrels, metric.score(labels, found).tolist(), strict=True))
    return float(metric.mean(labels, found)), values


def rank_metrics(run: Run, qrels: Qrels, k: int | None, *, method: int = 0) -> Answer:
    """The gist bwhite/3726239, as PyPI's cute-ranking has it."""
    from peers.golden.lifted import module

    vars(np).setdefault("asfarray", lambda values: np.asarray(values, dtype=float))  # NumPy 2 dropped it
    ndcg_at_k = module("cute-ranking", "cute_ranking/core.py").ndcg_at_k

    values = {}
    for qid in qrels:
        r = [qrels[qid].get(doc, 0) for doc in ranked(run, qid)]
        values[qid] = float(ndcg_at_k(r, len(r) if k is None else k, method))
    return mean_of(values)


def opensearch(run: Run, qrels: Qrels, k: int) -> Answer:
    from peers.golden.lifted import opensearch_ndcg

    return mean_of({qid: opensearch_ndcg(ranked(run, qid), qrels[qid], k) for qid in qrels})


# -- scores and labels --------------------------------------------------------------------------------------------


def _rows(lists: Iterable[Sequence[float]]) -> np.ndarray:
    return np.concatenate([np.asarray(values, dtype=float) for values in lists])


def _ids(lists: Lists) -> np.ndarray:
    return np.repeat(np.arange(len(lists)), [len(values) for values in lists])


def pyltr(scores: Lists, labels: Lists, k: int | None, *, gain: str = "exp2") -> Answer:
    import pyltr.metrics

    def metric() -> Any:
        return pyltr.metrics.NDCG(k=max(map(len, labels)) if k is None else k, gain_type=gain)

    pairs = zip(labels, scores, strict=True)
    values = [float(metric().evaluate_preds(0, np.array(y, float), np.array(s, float))) for y, s in pairs]
    return float(metric().calc_mean(_ids(labels), _rows(labels), _rows(scores))), values


def fastrank(scores: Lists, labels: Lists, k: int | None) -> Answer:
    from fastrank import CDataset, CModel

    if np.isnan(_rows(scores)).any():
        raise ValueError("fastrank panics at a NaN, which ends the process")
    X = np.column_stack([_rows(scores), np.zeros(sum(map(len, scores)))]).astype(np.float32)
    data = CDataset.from_numpy(X, _rows(labels), _ids(labels).astype(np.int64))
    model = CModel.from_dict({"Linear": {"weights": [1.0, 0.0]}})
    said = data.evaluate(model, "ndcg" if k is None else f"ndcg@{k}")
    values = [float(said[str(query)]) for query in range(len(labels))]
    return fmean(values), values


def ignite(
    scores: Lists, labels: Lists, k: int, *, skip: bool = True, gain: str = "exp_rank", threshold: float = 1
) -> Answer:
    import torch
    from ignite.metrics.rec_sys.ndcg import NDCG

    metric = NDCG([k], ignore_zero_hits=skip, gain_function=gain, relevance_threshold=threshold)
    for s, y in zip(scores, labels, strict=True):
        metric.update((torch.tensor([s], dtype=torch.float32), torch.tensor([y], dtype=torch.float32)))
    return metric.compute()[0], None


def pyg(run: Run, qrels: Qrels, k: int, *, weighted: bool = False) -> Answer:
    import torch
    from torch_geometric.metrics import LinkPredNDCG

    number, metric = numbered(run, qrels), LinkPredNDCG(k, weighted=weighted)
    for qid in qrels:
        wanted = relevant(qrels, qid)
        index = torch.tensor([[0] * len(wanted), [number[doc] for doc in wanted]], dtype=torch.long)
        weight = torch.tensor([float(qrels[qid][doc]) for doc in wanted]) if weighted else None
        found = torch.tensor([[number[doc] for doc in ranked(run, qid, k)]], dtype=torch.long)
        metric.update(found, index, weight)
    return float(metric.compute()), None


def torchrec(
    scores: Lists,
    labels: Lists,
    k: int | None,
    *,
    weights: list[float] | None = None,
    exponential: bool = True,
    decreasing: bool = False,
) -> Answer:
    """One batch, without the metric's window over batches; ``decreasing`` is its default, 1 - NDCG."""
    import torch
    from peers.golden.lifted import functions

    lib = functions("torchrec", "torchrec/metrics/ndcg.py", "_get_ndcg_states", "_compute_ndcg")
    each = np.ones(len(labels)) if weights is None else np.asarray(weights)
    states = lib._get_ndcg_states(
        labels=torch.tensor(_rows(labels), dtype=torch.float32)[None],
        predictions=torch.tensor(_rows(scores), dtype=torch.float32)[None],
        weights=torch.tensor(each[_ids(labels)], dtype=torch.float32)[None],
        session_ids=torch.tensor(_ids(labels))[None],
        exponential_gain=exponential,
        k=-1 if k is None else k,
        report_ndcg_as_decreasing_curve=decreasing,
    )
    return float(lib._compute_ndcg(sum_ndcg=states["sum_ndcg"], num_sessions=states["num_sessions"])[0]), None


def tfma(scores: Lists, labels: Lists, k: int, *, weights: list[float] | None = None) -> Answer:
    from peers.golden.lifted import tfma_combiner

    key, combiner = tfma_combiner(k)
    accumulator = combiner.create_accumulator()
    for row, (s, y) in enumerate(zip(scores, labels, strict=True)):
        weight = 1.0 if weights is None else weights[row]
        element = SimpleNamespace(combined_features=y, predictions=s, weight=weight)
        accumulator = combiner.add_input(accumulator, element)
    return float(combiner.extract_output(accumulator)[key]), None


def transformers4rec(scores: Lists, labels: Lists, k: int, *, largest: int) -> Answer:
    """With top_ks=[k, largest]. It scores every item there is, so to each list come items, last and not relevant."""
    import torch
    from peers.golden.lifted import transformers4rec_ndcg

    metric = transformers4rec_ndcg([k, largest])
    for s, y in zip(scores, labels, strict=True):
        others = [min(s) - 1 - i for i in range(largest)]
        metric.update(torch.tensor([s + others]), torch.tensor([y + [0.0] * largest]))
    return float(metric.compute()[0]), [float(batch[0, 0]) for batch in metric.metric_mean]


def keras_rs(scores: Lists, labels: Lists, k: int | None, *, weights: list[float] | None = None) -> Answer:
    """Padded lists; the backend is that of the environment variable KERAS_BACKEND."""
    import keras_rs.metrics

    metric = keras_rs.metrics.NDCG(k=k)
    longest = max(map(len, labels))
    y_true = np.array([[*y, *[-1.0] * (longest - len(y))] for y in labels], dtype=np.float32)
    y_pred = np.array([[*s, *[s[0]] * (longest - len(s))] for s in scores], dtype=np.float32)
    metric.update_state(y_true, y_pred, sample_weight=None if weights is None else np.array(weights, np.float32))
    return float(metric.result()), None


def flaml(scores: Lists, labels: Lists, k: int | None) -> Answer:
    """1 - its loss; without a cut-off it scores the whole set as one query."""
    from flaml.automl.ml import sklearn_metric_loss_score

    name = "ndcg" if k is None else f"ndcg@{k}"
    return 1 - float(sklearn_metric_loss_score(name, _rows(scores), _rows(labels), groups=_ids(labels))), None


def whylogs(scores: Lists, labels: Lists, k: int | None) -> Answer:
    import pandas as pd
    from whylogs.experimental.api.logger import log_batch_ranking_metrics

    data = pd.DataFrame({"labels": labels, "scores": scores})
    view = log_batch_ranking_metrics(data, target_column="labels", score_column="scores", k=k).view()
    [column] = [name for name in view.get_columns() if name.startswith("norm_dis_cumul_gain_k_")]
    return float(view.get_column(column).to_summary_dict()["distribution/mean"]), None


def pytorchltr(scores: Lists, labels: Lists, k: int | None, *, exponential: bool = True) -> Answer:
    """Padded lists. Without a cut-off it gives the value at every rank, of which the last is that of the list."""
    import torch
    from peers.golden.lifted import pytorchltr_ndcg

    shape = len(labels), max(map(len, labels))
    inside = np.arange(shape[1]) < np.array([len(values) for values in labels])[:, None]
    y, s = np.zeros(shape, dtype=np.float32), np.zeros(shape, dtype=np.float32)
    y[inside], s[inside] = _rows(labels), _rows(scores)
    said = pytorchltr_ndcg(torch.tensor(s), torch.tensor(y), torch.tensor(inside.sum(axis=1)), k, exponential)
    values = (said if k is not None else said[:, -1]).tolist()
    return fmean(values), values


def rankeval(scores: Lists, labels: Lists, k: int | None, *, gain: str = "exp") -> Answer:
    from peers.golden.lifted import rankeval_ndcg

    class Data:
        """What it reads of its own data set, which it keeps as a key."""

        y, n_queries = _rows(labels), len(labels)

        def query_iterator(self) -> Iterator[tuple[int, int, int]]:
            ends = np.cumsum([len(values) for values in labels]).tolist()
            yield from zip(range(len(labels)), [0, *ends], ends, strict=False)

    mean, values = rankeval_ndcg(cutoff=k, implementation=gain).eval(Data(), _rows(scores))
    return float(mean), values.tolist()


def ptranking(scores: Lists, labels: Lists, k: int) -> Answer:
    """Batches of one query, and the cut-offs 1 and k, because it fails where no cut-off fits."""
    import torch
    from peers.golden.lifted import ptranking_evaluator

    def batches(lists: slice) -> Any:
        pairs = zip(scores[lists], labels[lists], strict=True)
        return [([0], torch.tensor([s]), torch.tensor([y], dtype=torch.float32)) for s, y in pairs]

    def asked(lists: slice) -> float:
        return float(ptranking_evaluator().ndcg_at_ks(batches(lists), ks=[1, k])[1])

    return asked(slice(None)), [asked(slice(i, i + 1)) for i in range(len(labels))]
