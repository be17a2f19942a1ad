"""Submitting a file of several documents: jobs, CronJobs and Queues, each by itself, as `kubectl apply -f` does."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from hekla.cli import manifest, output
from hekla.cli.client import Client, Failure
from hekla.client.errors import AuthenticationError, ResponseError
from hekla.domain import formats, yaml_text
from hekla.domain.errors import Invalid

MAX_DOCUMENTS = 100


@dataclass(frozen=True, slots=True)
class DocumentResult:
    """What became of a document. `number`: its place in the file, from 1; `error`: empty if it was created."""

    number: int
    kind: str
    name: str
    error: str = ""
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}" if self.name else self.kind


def has_several(documents: Sequence[Any]) -> bool:
    """Whether the documents are submitted one by one: several jobs, CronJobs and Queues, or a single CronJob."""
    found = [kind for document in documents if (kind := formats.kind_of(document))]
    return len(found) > 1 or "CronJob" in found


@dataclass(frozen=True, slots=True)
class FileSubmission:
    """The documents of a file, and the options for all of them. `notifying`: of its jobs."""

    client: Client
    path: Path
    documents: Sequence[Any]
    tenant: str | None
    queue: str | None
    dry_run: bool
    notifying: Mapping[str, Any]

    def run(self, *, as_json: bool) -> int:
        """Submit each document, and print the results. Returns the exit code: 1 if one failed."""
        numbered = [(n, one) for n, one in enumerate(self.documents, start=1) if not formats.is_beside(one)]
        if len(numbered) > MAX_DOCUMENTS:
            raise Failure(
                f"{self.path} has {len(numbered)} documents. At most {MAX_DOCUMENTS} can be submitted at once."
            )
        results = []
        for number, document in numbered:
            results.append(self._result(number, document))
            if not as_json:
                self._print(results[-1])
        failed = sum(bool(result.error) for result in results)
        if as_json:
            output.as_json([asdict(result) for result in results])
        else:
            word = "valid. Nothing was submitted." if self.dry_run else "created."
            click.echo(f"{len(results) - failed} of {len(results)} documents {word}")
        return 1 if failed else 0

    def _print(self, result: DocumentResult) -> None:
        for warning in result.warnings:
            click.secho(f"Note: document {result.number}: {warning}", fg="yellow", err=True)
        if result.error:
            click.secho(f"document {result.number}: {result} failed: {result.error}", fg="red", err=True)
        else:
            click.echo(f"{result} created{' (dry run)' if self.dry_run else ''}")

    def _result(self, number: int, document: Any) -> DocumentResult:  # noqa: ANN401  (whatever the YAML holds)
        kind, name = _kind_and_name(document)
        try:
            name, warnings = self._send(document)
        except Invalid as error:
            problems = (f"{each.path}: {each.message}" if each.path else each.message for each in error.problems)
            return DocumentResult(number, kind, name, "\n  ".join(problems))
        except AuthenticationError:
            raise
        except ResponseError as error:
            return DocumentResult(number, kind, name, str(error))
        return DocumentResult(number, kind, name, warnings=tuple(warnings))

    def _send(self, document: Any) -> tuple[str, Sequence[str]]:  # noqa: ANN401
        """Submit a document. Returns its name and the warnings. Raises Invalid or ResponseError."""
        dry_run = "1" if self.dry_run else None
        kind = formats.kind_of(document)
        if kind == "Queue":
            queue = self.client.post_yaml("queues", yaml_text.write([document]).encode(), dry_run=dry_run)
            return queue["name"], queue["warnings"]
        if kind == "CronJob":
            schedule = formats.load_schedule(yaml_text.write([*self._mounted_by(document), document]))
            self.client.post("schedules", schedule.spec.document(), tenant=self.tenant, dry_run=dry_run)
            return schedule.spec.name, schedule.warnings
        read = manifest.read_one(self.path, document, self.documents, queue=self.queue)
        send: Any = self.client.check if self.dry_run else self.client.submit
        send(read.document, tenant=self.tenant, **self.notifying)
        return str(read.document["name"]), read.warnings

    def _mounted_by(self, document: Any) -> list[Any]:  # noqa: ANN401
        """The ConfigMaps and claims whose names the document mentions."""
        texts = set(_texts(document))
        beside = (one for one in self.documents if formats.is_companion(one))
        return [one for one in beside if _kind_and_name(one)[1] in texts]


def _kind_and_name(document: Any) -> tuple[str, str]:  # noqa: ANN401
    """The kind in lower case and the name, as far as the document has them."""
    if not isinstance(document, dict):
        return "document", ""
    metadata = document.get("metadata")
    name = (metadata if isinstance(metadata, dict) else document).get("name")
    return str(document.get("kind") or "job").lower(), str(name or "")


def _texts(value: Any) -> Iterator[str]:  # noqa: ANN401
    """Every text in JSON-like data."""
    if isinstance(value, str):
        yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(one)
