"""Check the names of the files that commands write."""

from __future__ import annotations

import os
import stat
from typing import Any

import click

from ndcg_ml._core.one_line import brief


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
