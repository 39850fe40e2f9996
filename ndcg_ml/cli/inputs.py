"""Options that several commands have, the data that they read, the files that they write, and how they print."""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
import numpy as np
from numpy.typing import NDArray

from ndcg_ml import _show
from ndcg_ml._core.column_names import Wanted
from ndcg_ml._core.queries import Queries
from ndcg_ml._core.slice_names import slice_names
from ndcg_ml._files.opening import ColumnError, DataFileError, decode_id, is_empty, numbered, wrong_line
from ndcg_ml._files.read_run import Ids, read_rows
from ndcg_ml._files.tables import table_columns
from ndcg_ml._plain.checks import KSpec, OneK
from ndcg_ml._plain.messages import brief, install, visible
from ndcg_ml.arrays import evaluate
from ndcg_ml.flavor import Flavor, as_flavor
from ndcg_ml.readers import read_letor, score_columns
from ndcg_ml.results.evaluation import Evaluation
from ndcg_ml.runs import Exclude, Which, align, evaluate_run

if TYPE_CHECKING:
    from ndcg_ml.model_labels import CorrectedEvaluation
    from ndcg_ml.results.comparison import Comparison

# -- check the names of the files that commands write -----------------------------------------------------------------


class _Output(click.Path):
    """The name of an output file, in an existing and writable folder."""

    def __init__(self, allow_dash: bool = False) -> None:
        super().__init__(dir_okay=False, writable=True, allow_dash=allow_dash)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "-" and not self.allow_dash:
            self.fail("must be the name of a file; got -.", param, ctx)
        file = os.fsdecode(super().convert(value, param, ctx))
        if not os.path.exists(file) or os.path.isfile(file):  # a device or a pipe needs no folder
            folder = os.path.dirname(os.path.realpath(file))
            shown = f"{folder}, into which {file} links," if os.path.islink(file) else os.path.dirname(file) or "."
            if not os.path.isdir(folder):
                self.fail(f"the folder {shown} does not exist.", param, ctx)
            if not os.access(folder, os.W_OK):
                self.fail(f"the folder {shown} cannot be written to.", param, ctx)
        return file


OUTPUT = _Output()
OUTPUT_OR_STDOUT = _Output(allow_dash=True)


def refuse_overwriting(*more: str | None) -> None:
    """Refuse an output of this command that is one of its inputs, or the same file as another output.

    Inputs are all other files among the arguments, standard input, and `more`.
    """
    context = click.get_current_context()
    outputs, read = {}, ["-", *(file for file in more if file is not None)]
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if isinstance(parameter.type, _Output):
            outputs[parameter.opts[0]] = value
            continue
        texts = [text for text in (value if isinstance(value, tuple) else [value]) if isinstance(text, str)]
        read += texts
        if parameter.name == "labels":  # LETOR labels may come with a file of query sizes
            read += [f"{text}.query" for text in texts]
    taken = {_identity(file): file for file in read if file == "-" or os.path.isfile(file)}
    for option, file in outputs.items():
        place = None if file in (None, "-") else _identity(file)
        if place is not None and place in taken:
            used = f"{brief(taken[place])}, an input" if taken[place] in read else f"the output of {taken[place]}"
            raise click.UsageError(f"{option} would replace {used}. Name another file.")
        taken[place] = option


def _identity(file: str) -> object:
    """Return the same key for all names of a file; None for a pipe or a device."""
    try:
        found = os.stat(0 if file == "-" else file)
    except OSError:
        return os.path.realpath(file)
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


# -- print results as text or JSON, and write reports -----------------------------------------------------------------


def show(result: object, document: Mapping[str, Any] | None = None) -> None:
    """Print a result, or this document of it as JSON, with escapes for characters that the output cannot encode."""
    text = str(result) if document is None else json.dumps(document, indent=2, allow_nan=False)
    encoding = sys.stdout.encoding or "utf-8"
    click.echo(text.encode(encoding, "backslashreplace").decode(encoding))
    for (_, path), columns in click.get_current_context().meta.get(_READ, {}).items():
        click.echo(f"{_one_line(path)}: {visible(', '.join(map(str, columns)))}", err=document is not None)


JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object, with every digit.")


def _report_file(_: click.Context, __: click.Parameter, file: str | None) -> str | None:
    if file is None:
        return None
    try:
        _show.report.require()
    except ImportError as error:
        raise click.ClickException(str(error)) from error
    return file


HTML = click.option(
    "--html",
    type=OUTPUT,
    callback=_report_file,
    help=f"Also write a report to this HTML file, replacing any existing file.  Requires {install('report')}.",
)


def write_report(result: Evaluation[Any] | Comparison, file: str | None) -> None:
    """Write a report to the file of ``--html``, if any."""
    if file is not None:
        result.to_html(file, command=shlex.join(click.get_current_context().find_root().obj))


# -- read files -------------------------------------------------------------------------------------------------------

_STDIN = "standard input"


class _Input(click.Path):
    """A file to read. Standard input (-) is copied to a file, because some formats are read from the end."""

    def __init__(self) -> None:
        super().__init__(exists=True, dir_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value != "-":
            return os.fsdecode(super().convert(value, param, ctx))
        import shutil  # rarely needed, and slow to import, as tempfile is
        from tempfile import TemporaryDirectory

        context = ctx or click.get_current_context()
        if _STDIN in context.meta:
            self.fail("only one file can be read from standard input (-).", param, ctx)
        path = context.meta[_STDIN] = os.path.join(context.find_root().with_resource(TemporaryDirectory()), _STDIN)
        with open(path, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        return path


FILE = _Input()

_READ = "columns that were read"
_OPTION_OF = {"qid": "query", "docno": "document", "label": "label", "score": "score"}


class BadInput(click.ClickException):
    """Data that cannot be used: one line on standard error, and exit code 2."""

    exit_code = 2


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The files of one evaluation, in one of three formats; any may be gzipped.

    Attributes
    ----------
    qrels, run : str or None
        Judgements and run.
    labels, scores : str or None
        LETOR/SVMlight labels with one score per line.
    table : str or None
        CSV, JSON or parquet.
    query, label, score, document : tuple of str
        Names of columns of the table, or of the qrels and the run: one for both, or one for each.
    queries : {"qrels", "run", "both"} or None
        The topics of qrels and run that count.
    exclude : str or None
        Documents to remove from the run: "identical", or the path of a file of topics and documents.
    """

    qrels: Any = None
    run: str | None = None
    labels: str | None = None
    scores: str | None = None
    table: str | None = None
    query: tuple[str, ...] = ()
    label: tuple[str, ...] = ()
    score: tuple[str, ...] = ()
    document: tuple[str, ...] = ()
    queries: Which | None = None
    exclude: str | None = None

    def __post_init__(self) -> None:
        forms = (("--qrels", "--run"), ("--labels", "--scores"), ("--table",))
        given = [name for form in forms for name in form if getattr(self, name[2:]) is not None]
        started = [form for form in forms if {*form} & {*given}]
        if len(started) != 1:
            got = " ".join(given) or "none"
            raise click.UsageError(
                f"the data must be given as --qrels with --run, as --labels with --scores, or as --table; got {got}."
            )
        missing = [name for name in started[0] if getattr(self, name[2:]) is None]
        if missing:
            present = next(name for name in started[0] if name not in missing)
            raise click.UsageError(f"{present} requires {missing[0]}.")
        for name in ("queries", "exclude"):
            if getattr(self, name) is not None and self.qrels is None:
                raise click.UsageError(f"--{name} requires --qrels and --run.")
        columns = [name for name in _OPTION_OF.values() if getattr(self, name)]
        if columns and self.labels is not None:
            raise click.UsageError(f"--{columns[0]} requires --qrels and --run, or --table.")
        for name in columns:
            if len(getattr(self, name)) > (1 if self.qrels is None else 2):
                raise click.UsageError(f"--{name} must be given once, or twice for --qrels F --run F, in this order.")

    @property
    def flavor(self) -> Flavor:
        """The default flavor for these data: trec_eval for a run, otherwise sklearn."""
        return as_flavor("sklearn" if self.qrels is None else "trec_eval")

    def evaluate(self, flavor: Flavor, k: KSpec) -> Evaluation[Any]:
        """Evaluate the data with the function for their form, which keeps the topics of a run."""
        if self.qrels is not None and self.run is not None:
            result = evaluate_run(self.qrels, self.run, flavor=flavor, k=k, **self._selection())
            self._note(result.columns_read)
            return result
        return evaluate(**self.arguments(), flavor=flavor, k=k)

    def corrected(self, human: str, flavor: Flavor, k: OneK) -> CorrectedEvaluation:
        """Return NDCG of a run under a model's labels, corrected by human labels."""
        from ndcg_ml.model_labels import correct_labels

        if self.qrels is None or self.queries not in (None, "qrels"):
            raise click.UsageError(
                "--human requires --qrels with the labels of a model, --run, and all topics of the qrels."
            )
        return correct_labels(self.evaluate(flavor, k), replace(self, qrels=human).evaluate(flavor, k))

    def arguments(self) -> dict[str, Any]:
        """Return the data as arguments of functions that take labels and scores."""
        if self.qrels is not None and self.run is not None:
            aligned = align(self.qrels, self.run, **self._selection())
            self._note(aligned.columns_read)
            return aligned.arguments()
        if self.labels is not None and self.scores is not None:
            return read_letor(self.labels, self.scores).arguments()
        return self.columns()[0]

    def _selection(self) -> dict[str, Any]:
        """Return the topics, the exclusions and the names of columns as arguments of ``evaluate_run``."""
        return {"queries": self.queries or "qrels", "exclude": self._excluded(), "columns": self.names()}

    def names(self) -> dict[str, Any] | None:
        """Return the names of columns as the argument ``columns``; None without any."""
        options = {meaning: getattr(self, option) for meaning, option in _OPTION_OF.items()}
        return {meaning: each[0] if len(each) == 1 else [*each] for meaning, each in options.items() if each} or None

    def _note(self, read: Mapping[str, Mapping[Any, str]]) -> None:
        """Note the columns that were read, for ``show``."""
        notes = click.get_current_context().meta.setdefault(_READ, {})
        notes |= {(side, getattr(self, side)): [*columns.values()] for side, columns in read.items()}

    def columns(self, scores: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Return the rows of the table with each of these columns of scores, or with its own."""
        assert self.table is not None
        each = score_columns(self.table, self.names() or {}, scores)
        self._note({"table": each[0].columns_read})
        return [rows.arguments() for rows in each]

    def _excluded(self) -> Exclude | None:
        """Return the value of ``--exclude`` in the form of ``evaluate_run``."""
        if self.exclude is None or self.exclude == "identical":
            return cast("Exclude | None", self.exclude)
        if is_empty(self.exclude):
            return {}
        names = {meaning: name for meaning, name in (self.names() or {}).items() if meaning != "label"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # these pairs need no grades
            try:
                rows = read_rows("qrels", self.exclude, ids := Ids(), names)
            except ValueError as error:
                fix = "--exclude takes lines of a topic and a document, or any format of --qrels."
                raise DataFileError(f"{error} {fix}") from error
        documents: dict[str, list[Any]] = {}
        for row, topic in enumerate(ids.topics.names(rows.topic).tolist()):
            documents.setdefault(topic, []).append(ids.kind.decode(ids.documents[row]))
        return documents

    def slice_names(self, by: Sequence[str], ids: NDArray[Any]) -> dict[str, list[Any]]:
        """Return the slice name of each query, for each column of ``--table`` or file that ``--by`` names."""
        columns = {os.path.basename(name) if os.path.isfile(name) else name: name for name in by}
        if len(columns) < len(by):
            raise click.UsageError(
                "--by must name each column or file once; files in different folders must differ in name."
            )
        return {column: self.query_names(name, ids) for column, name in columns.items()}

    def query_names(self, name: str, ids: NDArray[Any], option: str = "--by") -> list[Any]:
        """Return the value of each query in a column of ``--table``, or in a file with a line per query."""
        column = self._column(name)
        if column is None:
            if not os.path.isfile(name):
                other = ", or a column of --table" * (self.table is not None)
                raise click.UsageError(
                    f"{option} must be a file with the id of a query and its label on each line{other}; got "
                    f"{brief(name)}."
                )
            return _read_query_names(name, ids)
        if os.path.exists(name):
            raise click.UsageError(
                f"{option} must be a column of --table or a file; {brief(name)} is both. Use ./{name} for the file."
            )
        return [column[query] for query in ids.tolist()]

    def _column(self, name: str) -> dict[str, Any] | None:
        """Return the value of each query in this column of the table; None if there is no such column."""
        if self.table is None:
            return None
        column = ("docno", name)  # its values are text, as ids are
        try:
            wanted = Wanted(("qid", column), {**(self.names() or {}), column: name})
            _, columns = table_columns(self.table, wanted)
        except ColumnError:
            return None
        rows = Queries.read(np.zeros(len(columns["qid"])), qid=columns["qid"], whole=False)
        return dict(zip(rows.ids.tolist(), slice_names({name: columns[column]}, rows)[name], strict=True))


def _read_query_names(file: str, ids: NDArray[Any]) -> list[str]:
    """Return the label of each query, from a file with a line per query."""
    labels: dict[str, str] = {}
    for number, line in numbered(file):
        tokens = [decode_id(file, number, token) for token in line.strip().split(maxsplit=1)]
        if len(tokens) == 1:
            raise wrong_line(file, number, "must be the id of a query and its label", line)
        if tokens and labels.setdefault(*tokens) != tokens[1]:
            query, label = map(brief, tokens)
            raise ValueError(
                f"{file}, line {number}: a query must have one label; {query} has {brief(labels[tokens[0]])} and "
                f"{label}."
            )
    queries = list(map(str, ids.tolist()))
    missing = [query for query in queries if query not in labels]
    if missing:
        raise ValueError(
            f"{file}: must have a label for each query; got none for {missing[0]} ({len(missing)} queries)."
        )
    return [labels[query] for query in queries]


@contextmanager
def refusals(kind: type[click.ClickException] = BadInput) -> Iterator[None]:
    """Refuse to replace an input, print errors of the library on one line, and its warnings on one line each."""
    refuse_overwriting()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        except OSError as error:
            message = f"{error.filename}: {error.strerror}" if error.filename else str(error)
            raise kind(_one_line(message)) from error
        except (ValueError, TypeError, ImportError) as error:
            raise kind(_one_line(error)) from error
    for warning in caught:
        click.echo(f"Warning: {visible(_one_line(warning.message))}", err=True)


def _one_line(message: object) -> str:
    """Return the message on one line, without the path of the copy of standard input, and with names as options."""
    stdin = click.get_current_context().meta.get(_STDIN)
    text = re.sub(r"columns=\{([^}]*)\}", _as_options, str(message))
    text = re.sub(r"\bflavor=('[^']*')", r"--flavor \1", text)
    return " ".join((text.replace(stdin, _STDIN) if stdin else text).split())


def _as_options(columns: re.Match[str]) -> str:
    """Return columns={'docno': 'piece'} as --document piece."""
    named = re.findall(r"'(\w+)': (\[[^]]*\]|'[^']*'|\w+)", columns[1])
    each = [(key, name) for key, names in named for name in re.findall(r"'[^']*'|\w+", names)]
    return " ".join(f"--{_OPTION_OF[key]} {shlex.quote(name.strip(chr(39)))}" for key, name in each)


def given_as_file(path: str | None) -> str | None:
    """Return the path, or None for standard input."""
    return None if path == click.get_current_context().meta.get(_STDIN) else path


# -- options of several commands --------------------------------------------------------------------------------------

_Command = TypeVar("_Command", bound=Callable[..., Any])

_OPTIONS = {
    "qrels": click.option(
        "--qrels",
        type=FILE,
        help="Judgements: TREC (topic, iteration, document, grade), CSV, TSV, JSONL, JSON or parquet.",
    ),
    "run": click.option(
        "--run",
        type=FILE,
        help="A run: TREC (topic, Q0, document, rank, score, tag) or any of these formats.",
    ),
    "queries": click.option(
        "--queries",
        type=click.Choice(["qrels", "run", "both"]),
        help="The topics that count: all in the qrels (those not in the run as empty rankings), all in the run, or "
        "those in both.  [default: qrels]",
    ),
    "exclude": click.option(
        "--exclude",
        metavar="identical|FILE",
        help="Documents to remove from the run before ranking: those whose id is that of their topic, or those in "
        "FILE, which has lines of a topic and a document, or any format of --qrels.",
    ),
    "labels": click.option("--labels", type=FILE, help="LETOR/SVMlight lines: grade qid:ID ..."),
    "scores": click.option("--scores", type=FILE, help="One score for each line of --labels."),
    "table": click.option(
        "--table",
        type=FILE,
        help="CSV, TSV, JSONL, JSON or parquet with columns of query ids, grades and scores, and of document ids if "
        "ties are broken by id.",
    ),
} | {
    name: click.option(
        f"--{name}",
        metavar="COLUMN",
        multiple=True,
        help=f"The column (or key) with the {what}, if its name is unusual. If --qrels and --run have different "
        "names, give both, that of the qrels first.",
    )
    for name, what in {
        "query": "query ids",
        "label": "grades",
        "score": "scores",
        "document": "document ids, or a list of them",
    }.items()
}


def data_options(*names: str) -> Callable[[_Command], _Command]:
    """Return the options with these names, or all, for data files; a command passes them to ``Inputs``."""

    def add(command: _Command) -> _Command:
        for name in reversed(names or tuple(_OPTIONS)):
            command = _OPTIONS[name](command)
        return command

    return add


def flavor_option(default: str | None = None, described: str | bool = True) -> Callable[[_Command], _Command]:
    """Return the option ``--flavor``, with its default, or a description of it for the help."""
    return click.option(
        "--flavor",
        type=flavor_text,
        metavar="FLAVOR",
        default=default,
        show_default=described,
        help="A preset (see 'ndcg-ml flavors') or a flavor's text, such as 'lightgbm@10[ties=average]'.",
    )


def flavor_text(value: str) -> Flavor:
    """Parse the name of a preset or a flavor's text."""
    try:
        return as_flavor(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def cut_off_option(
    words: str = "The cut-off, or 'none'.  [default: the flavor's own]", multiple: bool = False
) -> Callable[[_Command], _Command]:
    """Return the option ``-k``. Its value is ``...`` if it is not given, and a tuple if it may be repeated."""

    def different(ctx: click.Context, param: click.Parameter, ks: tuple[OneK, ...]) -> Any:
        ks = tuple(dict.fromkeys(ks))
        if len(ks) > 1 and not multiple:
            raise click.BadParameter(f"must be one cut-off; got {len(ks)}. Run the command for each.", ctx, param)
        return (ks if multiple else ks[0]) if ks else ...

    return click.option("-k", type=_CutOff(multiple), multiple=True, callback=different, help=words)


class _CutOff(click.ParamType):  # type: ignore[type-arg]  # not generic before Click 8.4
    """A cut-off, or one of several. The string ``none`` becomes None."""

    name = "K"

    def __init__(self, several: bool) -> None:
        self._several = several

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> OneK:
        if value == "none":
            return None
        if not _is_positive(value):
            each = value.split(",")
            hint = (
                f" Pass {' '.join(f'-k {k}' for k in each)}." if self._several and all(map(_is_positive, each)) else ""
            )
            self.fail(f"must be a positive integer, or 'none' for no cut-off; got {brief(value)}.{hint}", param, ctx)
        return int(value)


def _is_positive(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20 and int(text) > 0


def slice_option(what: str, multiple: bool = False) -> Callable[[_Command], _Command]:
    """Return the option ``--by``, for slices of queries."""
    words = f"{what}: a file with the id and the label of a query on each line, or a column of --table."
    return click.option(
        "--by", metavar="FILE|COLUMN", multiple=multiple, help=f"{words}{' May be repeated.' * multiple}"
    )


BETWEEN_0_AND_1 = click.FloatRange(0, 1, min_open=True, max_open=True)
CONFIDENCE = click.option(
    "--confidence",
    type=BETWEEN_0_AND_1,
    default=0.95,
    show_default=True,
    help="Simultaneous confidence of all intervals.",
)
SEED = click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Random seed.")
HUMAN = click.option(
    "--human",
    type=FILE,
    help="Human judgements of a random sample of the topics. The judgements of --qrels are then those of a model, "
    "which are corrected.",
)
