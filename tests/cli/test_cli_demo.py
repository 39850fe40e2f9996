"""``ndcg-ml demo``: the main job from the command line, on embedded data, on files, and on bad input."""

from __future__ import annotations

import pytest

pytest.importorskip("click")
pytest.importorskip("sklearn")

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from click.testing import CliRunner, Result

from ndcg_ml import Flavor, ndcg_score
from ndcg_ml.cli.commands import ndcg_ml
from ndcg_ml.demo import Split, digits_problem, letor_problem
from ndcg_ml.demo.comparison import WELL_KNOWN, agreements
from ndcg_ml.readers import DataFileError, read_columns

MODELS = {"scikit-learn", "PyTorch", "LightGBM", "no model"}
SMALL = ("--epochs", "2", "--rounds", "5")


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(ndcg_ml, ["demo", *map(str, arguments)])


def write_letor(path: Path, n_queries: int, *, seed: int = 0, qid: bool = True, n_features: int = 3) -> Path:
    """A file of ragged queries whose first feature tells the grade, and the side file if lines have no qid."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 9, n_queries)
    lines = []
    for query, size in enumerate(sizes):
        for grade in rng.integers(0, 4, size):
            values = [grade + rng.normal(), *rng.normal(size=n_features - 1)]
            features = " ".join(f"{index}:{value:.4f}" for index, value in enumerate(values, 1))
            lines.append(f"{grade} {f'qid:{query + 1} ' if qid else ''}{features}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if not qid:
        path.with_name(f"{path.name}.query").write_text("\n".join(map(str, sizes)) + "\n", encoding="utf-8")
    return path


def assert_agrees(document: dict) -> None:
    differences = {entry["compared"]: entry["difference"] for entry in document["agreement"]}
    in_float32 = {who: differences.pop(who) for who in list(differences) if who.startswith("torchmetrics")}
    assert len(differences) == 3  # ours, scikit-learn's, LightGBM's
    assert max(differences.values()) < 1e-9
    assert len(in_float32) == 1
    assert max(in_float32.values()) < 1e-5


class TestEmbeddedData:
    def test_json(self, tmp_path):
        picture = tmp_path / "curves.png"
        scores = tmp_path / "scores.csv"
        result = invoke("--queries", 40, *SMALL, "--json", "--picture", picture, "--scores", scores)
        assert result.exit_code == 0, result.output
        document = json.loads(result.stdout)
        assert_agrees(document)
        for model in document["models"]:
            rows = read_columns(scores, model["model"])
            assert ndcg_score(**rows.arguments(), flavor=document["flavor"]) == pytest.approx(model["test"], abs=1e-12)
        assert {model["model"] for model in document["models"]} == MODELS - {"no model"}
        assert set(document["presets"]) == {"this flavor", *WELL_KNOWN}
        assert document["presets"]["this flavor"] == document["presets"]["lightgbm"]
        for model in document["models"]:
            assert document["presets"]["this flavor"][model["model"]] == model["test"]
            assert model["history"][model["best"]] == max(model["history"]) == model["validation"]
        assert document["presets"]["sklearn"] != document["presets"]["lightgbm"]
        assert picture.read_bytes().startswith(b"\x89PNG")

    def test_tables_under_another_flavor_and_twice_the_same(self, tmp_path):
        arguments = ("--queries", 20, *SMALL, "--flavor", "sklearn[empty=skip]", "--picture", tmp_path / "curves.svg")
        result = invoke(*arguments)
        assert result.exit_code == 0, result.output
        for words in ("1. Three models", "2. The same predictions", "3. The same flavor", "max - min", *WELL_KNOWN):
            assert words in result.stdout
        assert str(Flavor.parse("sklearn[empty=skip]")) in result.stdout
        assert "curves.svg" in result.stdout.replace("\n", "")
        assert "Warning" not in result.output

        def second_table(output: str) -> str:
            return output[output.index("2. The same") : output.index("3. The same")]

        assert second_table(invoke(*arguments).stdout) == second_table(result.stdout)

    def test_the_problem(self):
        problem = digits_problem()
        parts = (problem.train, problem.valid, problem.test)
        for part in parts:
            assert part.features.shape == (part.sizes.sum(), 70)
            assert np.isfinite(part.features).all()
            assert set(part.labels.tolist()) == {0, 1, 2}
        assert (problem.test.sizes == 1).any()
        assert (np.bincount(problem.test.qid, weights=problem.test.labels) == 0).any()
        again, other = digits_problem(), digits_problem(seed=1)
        assert np.array_equal(problem.test.features, again.test.features)
        assert not np.array_equal(problem.test.sizes, other.test.sizes)


class TestFiles:
    def test_with_qid_and_a_validation_file(self, tmp_path):
        train = write_letor(tmp_path / "train.txt", 24)
        valid = write_letor(tmp_path / "valid.txt", 8, seed=1)
        test = write_letor(tmp_path / "test.txt", 12, seed=2, n_features=2)
        picture = tmp_path / "curves.png"
        result = invoke(
            "--train", train, "--valid", valid, "--test", test, *SMALL, "--json", "--picture", picture,
            "--flavor", "catboost@5[gain=0|1|3|7,empty=skip,aggregate=micro]",
        )  # fmt: skip
        assert result.exit_code == 0, result.output
        assert_agrees(json.loads(result.stdout))
        assert picture.exists()

    def test_side_files_and_no_validation_file(self, tmp_path):
        train = write_letor(tmp_path / "rank.train", 24, qid=False)
        test = write_letor(tmp_path / "rank.test", 12, seed=2, qid=False)
        result = invoke("--train", train, "--test", test, *SMALL, "--picture", tmp_path / "curves.png")
        assert result.exit_code == 0, result.output
        assert "no --valid file: 5 whole queries of rank.train" in result.stdout

    def test_both_forms_read_the_same(self, tmp_path):
        for folder, qid in (("a", True), ("b", False)):
            (tmp_path / folder).mkdir()
            write_letor(tmp_path / folder / "train", 24, qid=qid)
            write_letor(tmp_path / folder / "test", 12, qid=qid, n_features=2)
        with_qid, with_sizes = (letor_problem(tmp_path / f / "train", tmp_path / f / "test") for f in "ab")
        for name in ("train", "valid", "test"):
            one, other = getattr(with_qid, name), getattr(with_sizes, name)
            assert np.array_equal(one.features, other.features)
            assert np.array_equal(one.labels, other.labels)
            assert np.array_equal(one.sizes, other.sizes)
        assert with_qid.test.features.shape[1] == with_qid.train.features.shape[1] == 3
        assert with_qid.train.sizes.size + with_qid.valid.sizes.size == 24

    def test_rows_of_a_query_that_stand_apart_are_brought_together(self, tmp_path):
        test = tmp_path / "test"
        test.write_text("1 qid:9 1:0.5\n0 qid:3 1:0.25\n2 qid:9 1:0.75\n", encoding="utf-8")
        read = letor_problem(write_letor(tmp_path / "train", 12), test).test
        assert read.labels.tolist() == [1, 2, 0]
        assert read.sizes.tolist() == [2, 1]
        assert read.features[:, 0].tolist() == [0.5, 0.75, 0.25]

    def test_index_0_is_a_feature_where_a_file_has_it(self, tmp_path):
        test = tmp_path / "test"
        test.write_text("1 qid:q 0:0 2:0.5\n0 qid:q\n", encoding="utf-8")
        problem = letor_problem(write_letor(tmp_path / "train", 12), test)
        assert problem.test.features.tolist() == [[0, 0, 0.5, 0], [0, 0, 0, 0]]
        assert problem.train.features.shape[1] == 4

    def test_files_without_features_are_refused(self, tmp_path):
        train = tmp_path / "train"
        train.write_text("".join(f"{i % 2} qid:{i // 4}\n" for i in range(60)), encoding="utf-8")
        with pytest.raises(DataFileError, match=r"train: no line has a feature \(index:value\)"):
            letor_problem(train, train)

    def test_queries_of_one_document_alone(self):
        test = Split(np.ones((3, 1)), np.array([1, 0, 2]), np.ones(3, dtype=np.int64))
        found = {each.compared: each for each in agreements(Flavor.parse("sklearn@5"), test, {"a": np.arange(3.0)})}
        [scikit_learn] = [each for who, each in found.items() if who.startswith("scikit-learn")]
        assert (scikit_learn.queries, scikit_learn.difference) == (0, 0.0)

    def test_lightgbm_lambdarank(self, data_dir, tmp_path):
        folder = data_dir / "lightgbm_lambdarank"
        result = invoke(
            "--train", folder / "rank.train", "--test", folder / "rank.test",
            *SMALL, "--json", "--picture", tmp_path / "curves.png",
        )  # fmt: skip
        assert result.exit_code == 0, result.output
        document = json.loads(result.stdout)
        assert document["test"]["queries"] == 50
        assert_agrees(document)


BAD_FILES = {
    "no grade": ("hello world\n", "bad.txt, line 1: a line must begin with a grade"),
    "binary": (b"\xff\xfe\x00\x01\n", "holds a NUL byte"),
    "no value": ("1 qid:1 1:2\n1 qid:2 3 1:2\n", "bad.txt, line 2: features must be index:value"),
    "index of text": ("1 qid:1 a:2\n", "got 'a:2'"),
    "negative index": ("1 qid:1 1:2 -1:2\n", "got '-1:2'"),
    "index beyond all": (f"1 qid:1 1:2 {2**63}:2\n", f"got '{2**63}:2'"),
    "indices descend": ("1 qid:1 3:2 1:4\n", "in ascending order, the values finite; got '1 qid:1 3:2 1:4'"),
    "index twice": ("1 qid:1 3:2 3:4\n", "in ascending order"),
    "empty": ("", "has no rows"),
    "fraction": ("0.5 qid:1 1:2\n", "integers from 0 to 30"),
    "negative": ("-1 qid:1 1:2\n", "integers from 0 to 30"),
    "too high": ("31 qid:1 1:2\n", "integers from 0 to 30"),
    "nan": ("1 qid:1 1:nan\n", "the values finite; got '1:nan'"),
    "some qids": ("1 qid:1 1:2\n0 1:3\n", "bad.txt, line 2: every line must have qid:ID"),
    "no groups": ("1 1:2\n0 1:3\n", "there is no bad.txt.query"),
    "nothing relevant": ("0 qid:1 1:2\n", "has a grade above 0"),
    "huge index": ("1 qid:1 999999999:2\n", "more than this command holds in memory"),
}
BAD_SIDE_FILES = {
    "not numbers": ("two\n", "line 1: a line must be the size of a query, an integer of 1 or more; got 'two'"),
    "zero": ("2\n0\n", "line 2: a line must be the size of a query, an integer of 1 or more; got '0'"),
    "long": ("1" * 10**6, "line 1: a line must be the size of a query"),
    "empty": ("", "must sum to the 2 rows of bad.txt; got 0"),
    "sum": ("3\n", "must sum to the 2 rows"),
}


class TestBadInput:
    @pytest.mark.parametrize(("content", "reason"), BAD_FILES.values(), ids=BAD_FILES)
    def test_file(self, tmp_path, content, reason):
        bad = tmp_path / "bad.txt"
        bad.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(DataFileError) as caught:
            letor_problem(write_letor(tmp_path / "train", 12), bad)
        assert reason in str(caught.value)
        assert "bad.txt" in str(caught.value)

    @pytest.mark.parametrize(("content", "reason"), BAD_SIDE_FILES.values(), ids=BAD_SIDE_FILES)
    def test_side_file(self, tmp_path, content, reason):
        bad = tmp_path / "bad.txt"
        bad.write_text("1 1:2\n0 1:3\n", encoding="utf-8")
        bad.with_name("bad.txt.query").write_text(content, encoding="utf-8")
        with pytest.raises(DataFileError) as caught:
            letor_problem(write_letor(tmp_path / "train", 12), bad)
        assert reason in str(caught.value)
        assert "bad.txt.query" in str(caught.value)

    def test_few_queries(self, tmp_path):
        few = write_letor(tmp_path / "few", 4)
        with pytest.raises(DataFileError, match="at least 8 queries are needed; got 4"):
            letor_problem(few, few)

    def test_on_the_command_line_a_bad_file_is_a_usage_error(self, tmp_path):
        bad = tmp_path / "bad.txt"
        bad.write_text("hello world\n", encoding="utf-8")
        result = invoke("--train", bad, "--test", bad)
        assert result.exit_code == 2
        assert "bad.txt, line 1: a line must begin with a grade" in result.output.replace("\n", " ")
        assert "Traceback" not in result.output

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (("--flavor", "lightgmb"), "Did you mean 'lightgbm'"),
            (("--flavor", "sklearn@0"), "must be an integer >= 1"),
            (("--flavor", "trec_eval@10"), "docid"),
            (("--flavor", "sklearn[empty=nan]"), "empty=nan"),
            (("--flavor", "ndcg@10[gain=-1|0|1]"), "must not be negative in a loss"),
            (("--flavor", "sklearn[gain=0|1]"), "gain table"),
            (("--flavor", "sklearn[empty=raise]"), "empty='raise'"),
            (("--picture", "nowhere/curves.png"), "does not exist"),
            (("--picture", "curves.docx"), "must end in one of"),
            (("--scores", "nowhere/scores.csv"), "does not exist"),
            (("--train", __file__, "--test", __file__, "--scores", __file__), "is read, or written as well"),
            (("--picture", "one.svg", "--scores", "./one.svg"), "is read, or written as well"),
            (("--train", __file__), "needs --test"),
            (("--test", __file__), "needs --train"),
            (("--train", __file__, "--test", __file__, "--queries", "40"), "--queries is for the embedded data"),
            (("--train", "nowhere.txt"), "does not exist"),
        ],
    )
    def test_option(self, arguments, words):
        result = invoke(*arguments)
        assert result.exit_code == 2, result.output
        assert words in " ".join(result.output.split())


class TestEntry:
    def run(self, program: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    def test_version(self):
        from ndcg_ml import __version__

        done = self.run("import sys; sys.argv = ['ndcg-ml', '--version']; from ndcg_ml.cli import main; main()")
        assert (done.returncode, done.stdout.strip()) == (0, f"ndcg-ml, version {__version__}")

    def test_importing_is_light(self):
        heavy = "('click', 'rich', 'matplotlib', 'sklearn', 'torch', 'lightgbm', 'pandas')"
        done = self.run(f"import sys, ndcg_ml.cli; print([name for name in {heavy} if name in sys.modules])")
        assert done.stdout.strip() == "[]", done.stderr

    @pytest.mark.parametrize("missing", ["click"])
    def test_says_what_to_install(self, missing):
        done = self.run(f"import sys; sys.modules[{missing!r}] = None; from ndcg_ml.cli import main; main()")
        assert done.returncode == 1
        assert done.stderr.strip() == (
            f"The ndcg-ml command needs {missing}, which is not installed. Install it with: pip install 'ndcg_ml[cli]'"
        )

    @pytest.mark.parametrize("missing", ["torch", "lightgbm", "sklearn", "matplotlib"])
    def test_says_what_the_demo_needs(self, missing):
        done = self.run(
            "import sys\n"
            "class Missing:\n"
            "    def find_spec(self, name, path=None, target=None):\n"
            f"        if name == {missing!r}: raise ModuleNotFoundError(f'No module named {{name!r}}', name=name)\n"
            "sys.meta_path.insert(0, Missing())\n"
            "sys.argv = ['ndcg-ml', 'demo']\n"
            "from ndcg_ml.cli import main; main()"
        )
        assert done.returncode == 1
        assert "pip install 'ndcg_ml[demo]'" in done.stderr
        assert "Traceback" not in done.stderr
