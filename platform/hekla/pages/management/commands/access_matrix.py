"""Prints the access matrix in Markdown. Tests compare the code with the same matrix."""

from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand

from hekla.apps.accounts.access import ROLES, Verdicts
from hekla.pages import access_matrix, registry

_WORDS = {"ok": "yes", "refused": "refused", "absent": "not found", "wrong": "invalid", "409": "name taken"}


class Command(BaseCommand):
    help = "Print who may open and do what, for every address, verb, role, socket and token, as Markdown."

    def handle(self, *_args: Any, **_options: Any) -> None:  # noqa: ANN401
        """Print the matrix."""
        self.stdout.write("\n".join(_lines()))


def _lines() -> Iterator[str]:
    yield "# Access matrix\n"
    yield "Everything else is refused. “not found”: the response is 404.\n"
    yield from (f"- **{_name(role)}**: {meaning}" for role, meaning in ROLES.items())
    yield "\n## Addresses\n"
    yield "“token”: the scope that a token needs besides the role of its owner; – if tokens are not accepted."
    yield "“impersonation”: whether a platform admin can use it while impersonating a person who can.\n"
    yield from _head("address", "verb", "token", "impersonation")
    answers = access_matrix.answers()
    for route, declared in sorted(access_matrix.declared().items()):
        for verb, verdicts in declared.by_verb():
            token = access_matrix.scope_for(answers[route], verb) or "–"
            impersonation = "yes" if access_matrix.is_open_to_impersonation(route, verb) else "–"
            yield _row(f"`{route}`", verb.upper(), token, impersonation, verdicts=verdicts)
    yield "\n## Sockets\n"
    yield from _head("socket")
    yield from (_row(f"`{socket}`", verdicts=verdicts) for socket, verdicts in registry.sockets().items())


def _head(*titles: str) -> Iterator[str]:
    columns = [*titles, *map(_name, ROLES)]
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"


def _row(*cells: str, verdicts: Verdicts) -> str:
    return f"| {' | '.join([*cells, *(_WORDS.get(verdicts[role], verdicts[role]) for role in ROLES)])} |"


def _name(role: str) -> str:
    return role.replace("_", " ")
