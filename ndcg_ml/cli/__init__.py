"""The ``ndcg-ml`` command.

This module runs the command and lists its subcommands. Click is imported when the command starts, a subcommand when it
is called, and a framework when a subcommand needs it.
"""

from __future__ import annotations

import errno
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from ndcg_ml import __version__
from ndcg_ml._plain.messages import did_you_mean, install, nearest, visible

if TYPE_CHECKING:
    import click

__all__ = ["main"]

_INTERRUPTED = 130  # 128 + SIGINT, as in shells

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


def main() -> None:
    """Run ``ndcg-ml`` with the arguments of the process."""
    try:
        code = _run()
        if sys.stdout is not None:  # None if the caller closed the stream
            sys.stdout.flush()
    except KeyboardInterrupt:
        code = _ended("interrupted", _INTERRUPTED)
    except OSError as error:
        # As in "| head": not an error. Windows calls it an invalid argument, and names no file.
        left = errno.EINVAL if os.name == "nt" and not error.filename else errno.EPIPE
        what = error.filename or "the output cannot be written"
        code = _ended("" if error.errno == left else f"{what}: {error.strerror or error}", 1)
    raise SystemExit(code)


def _run() -> int:
    try:
        import click
    except ModuleNotFoundError:
        print(f"The ndcg-ml command needs click. Install it with: {install('cli')}", file=sys.stderr)
        return 1
    try:
        return int(command_group().main(prog_name="ndcg-ml", standalone_mode=False) or 0)
    except click.ClickException as error:
        if not isinstance(error, click.exceptions.NoArgsIsHelpError):  # its message is the help
            error.message = visible(error.message) + _hint(error)  # type: ignore[misc]  # it may quote ids and file names
        error.show()
        return error.exit_code
    except click.Abort:  # how Click reports Ctrl-C
        raise KeyboardInterrupt from None


def _hint(error: click.ClickException) -> str:
    """Return a sentence that names the option that was meant, or an empty string."""
    import click

    if not isinstance(error, click.UsageError) or error.ctx is None:
        return ""
    options = {name.strip("-"): name for parameter in error.ctx.command.params for name in parameter.opts}
    if "--run" in options.values() and "unexpected extra argument" in error.message:
        return ". Pass each value after its option, such as --run FILE."
    if not isinstance(error, click.NoSuchOption) or error.possibilities:  # Click names the possibilities
        return ""
    near = nearest(error.option_name.strip("-").replace("-", "_"), options)
    return "" if near is None else f" Did you mean {options[near]}?"


def _ended(why: str, code: int) -> int:
    """Print the reason on standard error, and discard output that Python would still write."""
    try:
        if why:
            print(f"Error: {visible(why)}.", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, AttributeError):  # the stream is closed or has no file descriptor
        pass
    return code


def command_group() -> click.Group:
    """Return the command ``ndcg-ml``."""
    import click

    class Group(click.Group):
        """Import commands when they are called, and store the arguments, which reports show."""

        def list_commands(self, ctx: click.Context) -> list[str]:
            return list(_COMMANDS)

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

    @click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
    @click.version_option(__version__, prog_name="ndcg-ml")
    def ndcg_ml() -> None:
        """Define NDCG once, and get the same number everywhere.

        Exit codes: 0 success, 1 nothing found (identify) or output that cannot be written, 2 invalid arguments or
        data, 130 interrupted. Of gate: 0 not worse, 3 worse, 4 undecided, 1 invalid data, 2 invalid arguments.
        """

    return ndcg_ml
