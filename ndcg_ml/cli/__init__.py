"""The ``ndcg-ml`` command.

Importing this package imports no other package: click is looked for when the command
starts, and the frameworks when a command that uses them runs.
"""

from __future__ import annotations

import errno
import os
import sys

from ndcg_ml._one_line import visible

__all__ = ["main"]

_INTERRUPTED = 130  # 128 and the number of the signal, as of a shell's own commands


def main() -> None:
    """Run ``ndcg-ml`` with the arguments of the process, or say how to install what it lacks."""
    try:
        code = _run()
        if sys.stdout is not None:  # the caller closed the stream
            sys.stdout.flush()
    except KeyboardInterrupt:
        code = _ended("interrupted", _INTERRUPTED)
    except OSError as error:
        reader_left = error.errno == errno.EPIPE  # no error: "| head" has read enough
        what = error.filename or "the output cannot be written"
        code = _ended("" if reader_left else f"{what}: {error.strerror or error}", 1)
    raise SystemExit(code)


def _run() -> int:
    try:
        import click

        from ndcg_ml.cli.commands import ndcg_ml
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing != "click":
            raise
        print(
            f"The ndcg-ml command needs {missing}, which is not installed. Install it with: pip install 'ndcg_ml[cli]'",
            file=sys.stderr,
        )
        return 1
    try:
        return int(ndcg_ml.main(prog_name="ndcg-ml", standalone_mode=False) or 0)
    except click.ClickException as error:
        error.message = visible(error.message)  # type: ignore[misc]  # it quotes ids and file names
        error.show()
        return error.exit_code
    except click.Abort:  # click's own form of Ctrl-C
        raise KeyboardInterrupt from None


def _ended(why: str, code: int) -> int:
    """Say why on standard error, and see to it that Python does not try to write the rest of the output."""
    try:
        if why:
            print(f"Error: {visible(why)}.", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, AttributeError):  # the stream is closed, or nothing is to be written
        pass
    return code
