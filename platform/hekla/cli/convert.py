"""Conversion between kinds of manifests, without a server."""

from pathlib import Path

import click

from hekla.cli import manifest
from hekla.cli.client import Failure
from hekla.domain import formats, yaml_text
from hekla.domain.errors import Invalid
from hekla.domain.jobspec import JobSpec

_DOCUMENT = "jobspec"
_KINDS = {form.word: form for form in formats.WRITABLE}


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@click.option(
    "--to",
    "kind",
    required=True,
    type=click.Choice([*_KINDS, _DOCUMENT], case_sensitive=False),
    help="Output format. volcano and jobspec keep every field. job is a Kubernetes Job.",
)
@click.option("--strict", is_flag=True, help="Write nothing and exit with 1 if any field would be lost.")
def convert(file: Path, kind: str, strict: bool) -> None:
    """Write the job in FILE (- for standard input) in another manifest format.

    Fields that are lost are listed on standard error. Exit status: 0 if the job was written, else 1.
    """
    spec, notes = manifest.described(file)
    try:
        written = _written(kind, spec)
    except Invalid as error:
        problems = [(problem.path, problem.message) for problem in error.problems]
        raise Failure(f"The job in {file} cannot be written as {kind}:", problems) from error
    for note in [*notes, *written.notes]:
        click.secho(f"Note: {note}", fg="yellow", err=True)
    if strict and (notes or written.notes):
        raise Failure("Nothing was written, because fields would be lost.")
    click.echo(written.text, nl=False)


def _written(kind: str, spec: JobSpec) -> formats.DumpedManifest:
    if kind == _DOCUMENT:
        return formats.DumpedManifest(yaml_text.write([spec.document()]), ())
    return formats.write(spec, _KINDS[kind])
