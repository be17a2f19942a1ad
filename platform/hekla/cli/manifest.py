"""From a file on this machine to the document that is sent.

Files next to the manifest are included if a task's command names them (`python train.py`) or the annotation
`hekla.io/files` does. Files outside the manifest's folder never are.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from hekla.cli.client import Failure
from hekla.domain import formats, yaml_text
from hekla.domain.errors import Invalid, Problem
from hekla.domain.flows import FlowSpec
from hekla.domain.formats import LoadedJob
from hekla.domain.jobspec import MAX_FILE_BYTES, JobSpec
from hekla.domain.validation import quote
from hekla.domain.yaml_text import MAX_BYTES

_FILES = "hekla.io/files"


@dataclass(frozen=True, slots=True)
class LoadedManifest:
    """The job, warnings about fields without effect, and the included files. `document` also has the secrets."""

    document: dict[str, Any] = field(repr=False)
    warnings: tuple[str, ...]
    files: tuple[str, ...]


def read(path: Path, *, name: str | None, queue: str | None) -> LoadedManifest:
    """The job in a manifest of any kind, or in a JobSpec document, with files next to it. Raises Failure."""
    text, folder = bytes_of(path), path.resolve().parent
    try:
        spec, warnings, file_names, secrets = _load(text)
        files = _beside(folder, spec, file_names)
        return _complete(LoadedJob(spec, warnings, secrets), files, name=name, queue=queue)
    except Invalid as error:
        raise unfit(path, error) from error


def read_one(path: Path, document: Any, others: Sequence[Any], *, queue: str | None) -> LoadedManifest:  # noqa: ANN401
    """The job in one of the documents of a file, with files next to it. Raises Invalid."""
    file_names = _pop_file_names(document)
    if not formats.kind_of(document):
        kind = document.get("kind") if isinstance(document, dict) else document
        raise Invalid([Problem("", f"A {quote(kind)} cannot be submitted.")])
    loaded = formats.load_among(document, list(others))
    return _complete(loaded, _beside(path.resolve().parent, loaded.spec, file_names), name=None, queue=queue)


def _complete(loaded: LoadedJob, files: Mapping[str, str], *, name: str | None, queue: str | None) -> LoadedManifest:
    """The job with the files and the options of the command. Raises Invalid."""
    changes = {"name": name, "queue": queue, "files": {**files, **loaded.spec.files} or None}
    document = loaded.spec.document() | {key: value for key, value in changes.items() if value is not None}
    secrets = {"secrets": dict(loaded.secrets)} if loaded.secrets else {}
    return LoadedManifest(JobSpec.parse(document).document() | secrets, loaded.warnings, tuple(files))


def read_documents(path: Path) -> list[Any]:
    """The documents of a file. Raises Failure."""
    try:
        return yaml_text.read(bytes_of(path))
    except Invalid as error:
        raise unfit(path, error) from error


@dataclass(frozen=True, slots=True)
class LoadedFlowManifest:
    """Templates and perhaps a flow (`starts`), as a manifest with the included files."""

    text: str
    starts: bool
    warnings: tuple[str, ...]
    files: tuple[str, ...]


def read_flow(path: Path, *, name: str | None) -> LoadedFlowManifest | None:
    """The flow and the templates in a manifest; None if it has neither. Raises Failure."""
    folder = path.resolve().parent
    try:
        documents = yaml_text.read(bytes_of(path))
        if not formats.holds_flows(documents):
            return None
        file_names = {_name_of(document): _pop_file_names(document) for document in documents if _is_template(document)}
        loaded = formats.load_flow(yaml_text.write(documents))
        files = {spec.name: _beside(folder, spec, file_names.get(spec.name, [])) for spec in loaded.templates}
        specs = [_with_files(spec, files[spec.name]) for spec in loaded.templates]
        flow = FlowSpec.parse(loaded.flow.document() | ({"name": name} if name else {})) if loaded.flow else None
    except Invalid as error:
        raise unfit(path, error) from error
    text = formats.dump_flow(flow, specs) if flow else "---\n".join(map(formats.dump_template, specs))
    return LoadedFlowManifest(
        text, flow is not None, loaded.warnings, tuple(sorted({each for some in files.values() for each in some}))
    )


def read_queue(path: Path) -> bytes | None:
    """The text of a manifest with queues and nothing else, or None. Raises Failure."""
    text = bytes_of(path)
    try:
        return text if formats.holds_queues(yaml_text.read(text)) else None
    except Invalid as error:
        raise unfit(path, error) from error


def _is_template(document: Any) -> bool:  # noqa: ANN401  (whatever the YAML holds)
    return isinstance(document, dict) and document.get("kind") == "JobTemplate"


def _name_of(document: dict[str, Any]) -> object:
    metadata = document.get("metadata")
    return str(metadata.get("name")) if isinstance(metadata, dict) else None


def _with_files(spec: JobSpec, files: dict[str, str]) -> JobSpec:
    return JobSpec.parse({**spec.document(), "files": {**files, **spec.files}}) if files else spec


def described(path: Path) -> tuple[JobSpec, tuple[str, ...]]:
    """The job in a manifest (`-`: standard input) without other files, and the warnings. Raises Failure."""
    try:
        spec, warnings, file_names, secrets = _load(
            sys.stdin.buffer.read(MAX_BYTES + 1) if str(path) == "-" else bytes_of(path)
        )
    except Invalid as error:
        raise unfit(path, error) from error
    beside = f"metadata.annotations.{_FILES}: ignored: only a submission takes files along."
    unsaid = f"secrets: their values are not written: {', '.join(sorted(secrets))}."
    return spec, (*warnings, *([beside] if file_names else []), *([unsaid] if secrets else []))


def bytes_of(path: Path) -> bytes:
    """The content of the file. Raises Failure."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise Failure(f"{path} cannot be read: {error.strerror}.") from error


def unfit(path: Path, error: Invalid, what: str = "cannot be submitted") -> Failure:
    """The error that the file is invalid, with every problem."""
    problems = [(problem.path, problem.message) for problem in error.problems]
    return Failure(f"{path} {what}:", problems)


def _load(text: bytes) -> tuple[JobSpec, tuple[str, ...], list[str], Mapping[str, str]]:
    documents = yaml_text.read(text)
    if len(documents) == 1 and isinstance(documents[0], dict) and "tasks" in documents[0]:
        spec = JobSpec.parse(documents[0])
        return spec, spec.remarks, [], {}
    file_names = [name for document in documents for name in _pop_file_names(document)]
    loaded = formats.load(yaml_text.write(documents) if file_names else text)
    return loaded.spec, loaded.warnings, file_names, loaded.secrets


def _pop_file_names(document: Any) -> list[str]:  # noqa: ANN401  (whatever the YAML holds)
    """The file names in the annotation, which is removed: it is for this command and not for the server."""
    metadata = document.get("metadata") if isinstance(document, dict) else None
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    annotation = annotations.pop(_FILES, "") if isinstance(annotations, dict) else ""
    if not isinstance(annotation, str):
        raise Invalid([Problem(f"metadata.annotations.{_FILES}", "Name the files in one text, with commas between.")])
    return [name.strip() for name in annotation.split(",") if name.strip()]


def _beside(folder: Path, spec: JobSpec, file_names: list[str]) -> dict[str, str]:
    named = {word for task in spec.tasks for word in (*task.command, *task.args) if _is_beside(folder, word)} - set(
        spec.files
    )
    return {name: _text(folder, name, file_names) for name in sorted({*named, *file_names})}


def _is_beside(folder: Path, word: str) -> bool:
    inside = PurePosixPath(word)
    if inside.is_absolute() or ".." in inside.parts or str(inside) != word or "\n" in word or "\0" in word:
        return False
    try:
        path = folder / word
        return path.is_file() and path.resolve().is_relative_to(folder)
    except OSError:
        return False


def _text(folder: Path, name: str, file_names: list[str]) -> str:
    where = f"metadata.annotations.{_FILES}" if name in file_names else "command"
    if not _is_beside(folder, name):
        raise Invalid([Problem(where, f"There is no file “{name}” beside the manifest.")])
    try:
        with (folder / name).open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise Invalid([Problem(where, f"“{name}” has more than {MAX_FILE_BYTES // 1024} KiB.")])
        return data.decode()
    except UnicodeDecodeError:
        raise Invalid([Problem(where, f"“{name}” is not UTF-8 text. A job can have text files only.")]) from None
    except OSError as error:
        raise Invalid([Problem(where, f"“{name}” cannot be read: {error.strerror}.")]) from error
