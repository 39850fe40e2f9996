"""The command group ``ndcg-ml``. A command is imported when it is called."""

from __future__ import annotations

from importlib import import_module

import click

from ndcg_ml import __version__
from ndcg_ml._core.checks import did_you_mean

_COMMANDS = {
    "compare": ("ndcg_ml.cli.compare", "compare", "Compare two or more runs, query by query."),
    "demo": ("ndcg_ml.demo", "demo", "Choose three models by one NDCG flavor."),
    "eval": ("ndcg_ml.cli.evaluate", "evaluate", "Evaluate a run, or scores with labels."),
    "explain": ("ndcg_ml.cli.flavors", "explain", "Explain why two flavors disagree."),
    "flavors": ("ndcg_ml.cli.flavors", "flavors", "List what every library calls NDCG."),
    "gate": ("ndcg_ml.cli.gate", "gate", "Check that a new run is not worse than a baseline."),
    "identify": ("ndcg_ml.cli.flavors", "identify", "Find the flavors that give a value."),
    "judge-next": ("ndcg_ml.cli.judge_next", "judge_next", "List the documents to judge next."),
}


class _Group(click.Group):
    """Import commands when they are called, and store the arguments, which reports show."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, name, _ = _COMMANDS[cmd_name]
        return getattr(import_module(module), name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in _COMMANDS and not ctx.resilient_parsing:
            raise click.UsageError(f"no such command {args[0]!r}.{did_you_mean(args[0], _COMMANDS)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, _, words) in _COMMANDS.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.obj = ["ndcg-ml", *args]
        return super().parse_args(ctx, args)


@click.group(
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 success, 1 nothing found (identify) or output that cannot be written, 2 invalid arguments or "
    "data, 130 interrupted. Of gate: 0 not worse, 3 worse, 4 undecided, 1 invalid data, 2 invalid arguments.",
)
@click.version_option(__version__, prog_name="ndcg-ml")
def ndcg_ml() -> None:
    """Define NDCG once, and get the same number everywhere."""
