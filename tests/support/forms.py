"""The same judgements and the same run in the forms of public files: the header lines and keys are theirs."""

import json

# Grades are 0 and 1, so that lists of relevant documents say the same.
QRELS = {"q1": {"d1": 1, "d2": 0, "d3": 1}, "7": {"d4": 1, "d1": 1}}
RUN = {"q1": {"d3": 3.0, "d2": 2.5, "d1": 0.5}, "7": {"d9": 2.0, "d4": 1.5}}


def rows(data):
    """The topic, document, number, its truth value, rank and line number of each document."""
    each = [(q, d, v, rank) for q, of in data.items() for rank, (d, v) in enumerate(of.items(), 1)]
    names = ("q", "d", "v", "rank")
    return [dict(zip(names, row, strict=True), b=row[2] == 1, n=n) for n, row in enumerate(each)]


def lines(header, row, relevant=False):
    """A form of lines. If `relevant`, only documents of grade 1 have one."""

    def write(data):
        body = [row.format(**each) for each in rows(data) if each["v"] or not relevant]
        return "\n".join([*[header] * bool(header), *body, ""])

    return write


def array(one):
    """A form of objects, as one array."""
    return lambda data: json.dumps(one(data))


def jsonl(one):
    """A form of objects, one on each line."""
    return lambda data: "".join(f"{json.dumps(each)}\n" for each in one(data))


def by_topic(key, listed):
    """Objects with a topic and its documents."""
    return lambda data: [{key: q, **listed(of)} for q, of in data.items()]


def relevant(of):
    return [d for d, v in of.items() if v]


def flat(topic, document, number, **more):
    return lambda data: [{topic: e["q"], document: e["d"], number: e["v"], **more} for e in rows(data)]


SUJET = {"qid": "sujet", "docno": "piece", "label": "note"}
# name: how to write the judgements, and the names of columns to pass
FORMS = {
    "TREC": (lines("", "{q} 0 {d} {v}"), None),
    "TREC, tabs": (lines("", "{q}\t0\t{d}\t{v}"), None),
    "three columns, blanks": (lines("", "{q} {d} {v}"), None),
    "three columns, tabs": (lines("# a comment", "{q}\t{d}\t{v}"), None),
    "three columns, commas": (lines("", "{q},{d},{v}"), None),
    "two columns, blanks": (lines("", "{q} {d}", relevant=True), None),
    "two columns, tabs": (lines("", "{q}\t{d}", relevant=True), None),
    "TREC with a header": (lines("topic iteration document grade", "{q} 0 {d} {v}"), None),
    **{
        header: (lines(header, row), None)
        for header, row in {
            "query_id\titer\tdoc_id\trelevance": "{q}\t0\t{d}\t{v}",
            "query_id,doc_id,relevance": "{q},{d},{v}",
            "query_id\tcorpus_id\trelevance": "{q}\t{d}\t{v}",
            "query_id\tdoc_id\tgrade": "{q}\t{d}\t{v}",
            "query_id,doc_id,score": "{q},{d},{v}",
            ",qid,docno,rel_score": "{n},{q},{d},{v}",
            "qid\tdocno\trel": "{q}\t{d}\t{v}",
            "query-id\tcorpus-id\tscore": "{q}\t{d}\t{v}",
            "query_id\tdocno\trelevance": "{q}\t{d}\t{v}",
            "query,docid,rating,notes": "{q},{d},{v},",
            "Qid,Docno,Label": "{q},{d},{v}",
            "qid, docno, label": "{q}, {d}, {v}",
            "\ufeffquery_id,doc_id,relevance": "{q},{d},{v}",
            "userId,movieId,rating,timestamp": "{q},{d},{v},964982703",
            "user_id;item_id;rating": "{q};{d};{v}",
            "query,qid,docid,rel": "Movies with battles.,{q},{d},{v}",
            "qid,query,doc_id,relevance": "{q},political scandal,{d},{v}",
            "query_id,query,product_id,esci_label,relevance": "{q},monitor,{d},3,{v}",
            "query_id,query_text,doc_id,product_title,relevance": '"{q}","nuts, or\nno nuts","{d}","a ""box""",{v}',
            "queryId,documentId,relevanceScore": "{q},{d},{v}",
            "Question ID,Passage ID,Relevance Label": '"{q}", "{d}", {v}',
            "topic;doc;rel": "{q};{d};{v}",
            "request_id,url,judgement": "{q},{d},{b}",
            "session-id,article-id,JUDGMENT": "{q},{d},{b}",
            "question,chunk_id,label": "{q},{d},{v}.0",
        }.items()
    },
    "QueryID,DocID": (lines("QueryID,DocID", "{q},{d}", relevant=True), None),
    "qid,question,answers,pos_chunk_ids": (
        lines("qid,question,answers,pos_chunk_ids", "{q},what?,this,{d}", relevant=True), {"docno": "pos_chunk_ids"}),
    "sujet,piece,note": (lines("sujet,piece,note", "{q},{d},{v}"), SUJET),
    "sujet\tpiece\tnote, more": (lines("sujet\tpiece\tx\tnote", "{q}\t{d}\t9\t{v}"), SUJET),
    "{topic: {document: grade}}": (json.dumps, None),
    "{topic: [document]}": (lambda data: json.dumps({q: relevant(of) for q, of in data.items()}), None),
    "{topic: [object]}": (
        lambda data: json.dumps(
            {q: [{"doc_id": d, "relevance": v} for d, v in of.items()] for q, of in data.items()}), None),
    "{version, assessments}": (
        lambda data: json.dumps({"version": 2, "stats": {"n": 2}, "assessments": data}), None),
    "{items: [object]}": (lambda data: json.dumps({"items": flat("qid", "docno", "label")(data)}, indent=1), None),
    "{queries: [{id, text, relevant_docs}]}": (
        lambda data: json.dumps(
            {"queries": by_topic("id", lambda of: {"text": "?", "relevant_docs": relevant(of)})(data)}), {"qid": "id"}),
    "JSONL of documents": (jsonl(flat("query_id", "doc_id", "relevance", text="a: b")), None),
    "JSONL, true and false": (
        jsonl(lambda data: [{"query_id": e["q"], "docid": e["d"], "rel": e["b"]} for e in rows(data)]), None),
    "JSONL, sujet": (jsonl(flat("sujet", "piece", "note")), SUJET),
    "array of documents": (array(flat("question_id", "product_id", "grade")), None),
    "JSONL, relevant_doc_ids": (jsonl(by_topic("query_id", lambda of: {"relevant_doc_ids": 2 * relevant(of)})), None),
    "JSONL, lists of documents and grades": (
        jsonl(by_topic("query_id", lambda of: {"docno": [*of], "grade": [*of.values()]})), None),
    "JSONL, query and relevant": (jsonl(by_topic("query", lambda of: {"relevant": relevant(of)})), None),
    "array, relevant_ids": (
        array(by_topic("query_id", lambda of: {"query": "a text", "relevant_ids": relevant(of)})), None),
    "array, relevant_docs": (array(by_topic("query", lambda of: {"relevant_docs": relevant(of)})), None),
    "array, gold_chunks": (
        array(by_topic("question", lambda of: {"gold_chunks": relevant(of), "answer": "?"})), {"docno": "gold_chunks"}),
    "JSONL, expected_source": (
        jsonl(lambda data: [{"question": e["q"], "expected_source": e["d"]} for e in rows(data) if e["v"]]),
        {"docno": "expected_source"}),
    "JSONL, {document: grade}": (
        jsonl(by_topic("query_id", lambda of: {"text": "?", "relevance": of})), {"docno": "relevance"}),
}  # fmt: skip
POINTS = {"qid": "sujet", "docno": "piece", "score": "points"}
RUNS = {
    "TREC": (lines("", "{q} Q0 {d} {rank} {v} bm25"), None),
    "TREC with a header": (lines("qid Q0 docno rank score tag", "{q} Q0 {d} {rank} {v} bm25"), None),
    **{
        header: (lines(header, row), None)
        for header, row in {
            "query_id,doc_id,rank,score,product_title": "{q},{d},{rank},{v},a",
            "query_id\tdoc_id\trank": "{q}\t{d}\t{rank}",
            "user_id,item_id,prediction": "{q},{d},{v}",
            "question,chunk_id,similarity": "{q},{d},{v}",
            "query-id,corpus-id,score": "{q},{d},{v}",
        }.items()
    },
    "sujet;piece;points": (lines("sujet;piece;points", "{q};{d};{v}"), POINTS),
    "{topic: {document: score}}": (json.dumps, None),
    "{topic: [document]}": (lambda data: json.dumps({q: [*of] for q, of in data.items()}), None),
    "JSONL of documents": (jsonl(flat("query_id", "doc_id", "score")), None),
    "JSONL, results": (
        jsonl(by_topic("query_id", lambda of: {"results": [{"corpus_id": d, "score": of[d]} for d in of]})), None),
    "JSONL, lists of documents and scores": (
        jsonl(by_topic("query_id", lambda of: {"ids": [*of], "score": [*of.values()]})), None),
    "array, retrieved": (array(by_topic("question", lambda of: {"retrieved": [*of]})), None),
    "array, ids": (array(by_topic("query_id", lambda of: {"ids": [*of], "query": "a text"})), None),
    "array, hits": (array(by_topic("query", lambda of: {"hits": [{"id": d} for d in of]})), {"docno": "hits"}),
}  # fmt: skip
