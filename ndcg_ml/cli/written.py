"""The files that commands write: what may be named as one."""

from __future__ import annotations

import os
from typing import Any

import click


class _Output(click.Path):
    """The name of a file that can be written, as far as can be known before any work."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "-":
            self.fail("must be the name of a file; got -.", param, ctx)
        file = os.fsdecode(super().convert(value, param, ctx))
        if not os.path.exists(file) or os.path.isfile(file):  # a device or a pipe needs no folder
            folder = os.path.dirname(os.path.realpath(file))
            if not os.path.isdir(folder):
                self.fail(f"the folder {os.path.dirname(file)} does not exist.", param, ctx)
            if not os.access(folder, os.W_OK):
                self.fail(f"the folder {os.path.dirname(file)} cannot be written to.", param, ctx)
        return file


OUTPUT = _Output(dir_okay=False, writable=True)
