"""The command group ``ndcg-ml``, which imports a command when it is asked for."""

from __future__ import annotations

from importlib import import_module

import click

from ndcg_ml import __version__

_COMMANDS = {
    "compare": ("ndcg_ml.cli.compare", "compare"),
    "demo": ("ndcg_ml.demo", "demo"),
    "eval": ("ndcg_ml.cli.evaluate", "evaluate"),
    "explain": ("ndcg_ml.cli.explain", "explain"),
    "flavors": ("ndcg_ml.cli.flavors", "flavors"),
    "gate": ("ndcg_ml.cli.gate", "gate"),
    "identify": ("ndcg_ml.cli.identify", "identify"),
    "judge-next": ("ndcg_ml.cli.judge_next", "judge_next"),
}


class _Group(click.Group):
    """Keeps the arguments as they were typed, which a report shows, and imports commands when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, name = _COMMANDS[cmd_name]
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
