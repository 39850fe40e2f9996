"""The ``ndcg-ml`` command.

This module imports nothing but the standard library. Click is imported when the command starts, and
frameworks when a command needs them.
"""

from __future__ import annotations

import errno
import os
import sys

from ndcg_ml._core.one_line import visible

__all__ = ["main"]

_INTERRUPTED = 130  # 128 + SIGINT, as in shells


def main() -> None:
    """Run ``ndcg-ml`` with the arguments of the process."""
    try:
        code = _run()
        if sys.stdout is not None:  # None if the caller closed the stream
            sys.stdout.flush()
    except KeyboardInterrupt:
        code = _ended("interrupted", _INTERRUPTED)
    except OSError as error:
        reader_left = error.errno == errno.EPIPE  # as in "| head": not an error
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
        hint = ""
        if isinstance(error, click.NoSuchOption) and error.ctx is not None:
            short = error.option_name.replace("--", "-", 1)
            if any(short in parameter.opts for parameter in error.ctx.command.params):
                hint = f" Did you mean {short}?"
        error.message = visible(error.message) + hint  # type: ignore[misc]  # it may quote ids and file names
        error.show()
        return error.exit_code
    except click.Abort:  # how Click reports Ctrl-C
        raise KeyboardInterrupt from None


def _ended(why: str, code: int) -> int:
    """Print the reason on standard error, and discard output that Python would still write."""
    try:
        if why:
            print(f"Error: {visible(why)}.", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, AttributeError):  # the stream is closed or has no file descriptor
        pass
    return code
