"""Signatures as a reader needs them: one a function, with what its overloads return, and cut-offs spelled out.

The package has short names for the types of cut-offs, and parameters whose arguments are all refused with advice.
Neither tells a reader of the reference anything.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from griffe import Attribute, Extension, Function, Module, Object

# Types of cut-offs and of numbers by cut-off, by the names they have in ndcg_ml._plain.checks.
_NAMES = ("KSpec", "OneK")


class Signatures(Extension):
    """What mkdocstrings calls when the package has been read."""

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        """Rewrite the signatures of a package."""
        checks = pkg["_plain.checks"]
        words = {name: ast.literal_eval(str(checks.members[name].value)) for name in _NAMES}
        # The default says that `...` may be passed.
        self._spelled = {name: text.removesuffix(" | EllipsisType") for name, text in words.items()}
        self._spelled |= {"int | None | EllipsisType": "int | None", "K": "int | None"}
        self._walk(pkg)

    def _walk(self, parent: Object) -> None:
        for member in parent.members.values():
            if member.is_alias:
                continue
            if isinstance(member, Function):
                if member.overloads:
                    returned = dict.fromkeys(str(overload.returns) for overload in member.overloads)
                    member.returns, member.overloads = " | ".join(returned), None
                for parameter in [*member.parameters]:
                    if parameter.name == "unknown" or parameter.name.startswith("_"):
                        del member.parameters[parameter.name]
                self._spell(member)
            elif isinstance(member, Attribute):
                member.annotation = self._spelled_out(member.annotation)
            elif member.is_module or member.is_class:
                self._walk(member)

    def _spell(self, function: Function) -> None:
        for parameter in function.parameters:
            parameter.annotation = self._spelled_out(parameter.annotation)
        function.returns = self._spelled_out(function.returns)

    def _spelled_out(self, annotation: Any) -> Any:
        """The annotation as it is, with its links, or as text where a name in it is spelled out."""
        text = str(annotation)
        names = "|".join(map(re.escape, self._spelled))
        new = re.sub(rf"\b({names})\b", lambda found: self._spelled[found[1]], text)
        return annotation if annotation is None or new == text else new
