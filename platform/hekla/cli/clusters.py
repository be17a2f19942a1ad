"""Commands for clusters.

Credentials come from a file or standard input, never from an argument, which all users of the machine can read.
"""

import json
import sys
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.failing import Failure
from hekla.cli.servers import ServerOptions
from hekla.lib.text import strip_control_codes

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.command()
@_JSON
@click.pass_obj
def list_clusters(choice: ServerOptions, /, as_json: bool) -> None:
    """List the clusters and their health."""
    found = client_of(choice).clusters()
    if as_json:
        output.as_json(found)
        return
    rows = [
        (one["name"], one["kind"], _state(one), strip_control_codes((one["health"] or {}).get("version", "")))
        for one in found
    ]
    output.table(("NAME", "KIND", "STATE", "VERSION"), rows, "No clusters. Add one: hekla cluster set")


def _state(one: dict[str, Any]) -> str:
    if one["is_paused"]:
        return click.style("paused", fg="yellow")
    health = one["health"]
    if health is None:
        return "–"
    return "reachable" if health["is_reachable"] else click.style(f"unreachable ({health['problem']})", fg="red")


@click.command()
@click.argument("name")
@_JSON
@click.pass_obj
def show(choice: ServerOptions, name: str, as_json: bool) -> None:
    """Show the health and connection settings of cluster NAME. Of its credentials only the fingerprint is shown."""
    found = client_of(choice).get(f"clusters/{name}")
    if as_json:
        output.as_json(found)
        return
    click.echo(f"{found['name']} ({found['kind']}): {_state(found)}")
    health, key = found["health"], found["key"]
    if health:
        _tell_health(health)
        click.echo(f"Last check: {output.moment(health['checked_at'])}")
    if key:
        holder = strip_control_codes(key["holder"] or "–")
        click.echo(f"Credentials: {key['fingerprint']}, of {holder}, for {key['server']}")
        click.echo(f"  added {output.moment(key['added_at'])} by {key['added_by'] or '–'}; "
                   f"valid until {output.moment(key['valid_until'])}")  # fmt: skip
    click.echo("Configuration:")
    output.as_json(found["config"])


@click.command()
@click.argument("name")
@click.option("--kind", help="Backend of a new cluster: kubernetes, local, simulated, or an installed one.")
@click.option("--config", type=click.File("rb"), help="Backend configuration, a JSON file.")
@click.option("--kubeconfig", type=click.File("r"), help="Credentials: a kubeconfig file (- for standard input).")
@click.option("--server", help="Instead of a kubeconfig: the address of the API server, …")
@click.option("--authority", type=click.File("r"), help="… the certificate of its authority (PEM) …")
@click.option("--token-file", "token", type=click.File("r"), help="… and a token (- for standard input).")
@click.option("--pause/--go-on", "is_paused", default=None, help="Pause or resume scheduling on this cluster.")
@click.option("--anyway", is_flag=True, help="Save even if the connection check fails.")
@click.option("--try", "tried", is_flag=True, help="Check the connection only. Save nothing.")
@click.pass_obj
def set_cluster(
    choice: ServerOptions,
    /,
    name: str,
    kind: str | None,
    *,
    anyway: bool,
    tried: bool,
    **fields: Any,  # noqa: ANN401
) -> None:
    """Add or change the cluster NAME. The connection is checked before it is saved."""
    client, body = client_of(choice), _request_body(**fields)
    is_there = any(one["name"] == name for one in client.clusters())
    if is_there and kind:
        raise Failure(f"Cluster {name} exists already. To change it, omit --kind.")
    if not is_there:
        body |= {"name": name, "kind": kind or "kubernetes"}
    if tried:
        path, query = (f"clusters/{name}/try", {}) if is_there else ("clusters", {"dry_run": "1"})
        _print_health(client.post(path, body, **query))
        return
    body |= {"anyway": anyway}
    found = client.patch(f"clusters/{name}", body) if is_there else client.post("clusters", body)
    click.echo(f"{found['name']} was {'changed' if is_there else 'added'}: {client.server.url}/clusters/{name}/")


def _request_body(
    config: BinaryIO | None,
    kubeconfig: TextIO | None,
    server: str | None,
    authority: TextIO | None,
    token: TextIO | None,
    is_paused: bool | None,
) -> dict[str, Any]:
    texts = {"kubeconfig": kubeconfig, "authority": authority, "token": token}
    body: dict[str, Any] = {name: file.read() for name, file in texts.items() if file is not None}
    if "token" in body:
        body["token"] = body["token"].strip()
    body |= {} if config is None else {"config": _document(config)}
    options = {"server": server, "is_paused": is_paused}
    return body | {name: value for name, value in options.items() if value is not None}


def _document(file: BinaryIO) -> Any:  # noqa: ANN401  (the console judges it)
    try:
        return json.load(file)
    except ValueError as error:
        raise Failure(f"{Path(file.name).name} is not valid JSON: {error}.") from None


@click.command()
@click.argument("name")
@click.pass_obj
def check(choice: ServerOptions, /, name: str) -> None:
    """Check the health of cluster NAME now."""
    _print_health(client_of(choice).post(f"clusters/{name}/try", {}))


@click.command()
@click.argument("name")
@click.option(
    "--key", "only_key", is_flag=True, help="Delete the credentials only. The cluster then uses its configuration."
)
@click.pass_obj
def delete(choice: ServerOptions, name: str, only_key: bool) -> None:
    """Delete the cluster NAME. It must have no queues."""
    client_of(choice).delete(f"clusters/{name}/key" if only_key else f"clusters/{name}")
    click.echo(f"The credentials of {name} were deleted." if only_key else f"{name} was deleted.")


@click.command()
@click.argument("name")
@click.option("--delete", "is_deleted", is_flag=True, help="Delete the token.")
@click.pass_obj
def metrics_token(choice: ServerOptions, name: str, is_deleted: bool) -> None:
    """Set the token for the Prometheus that the configuration of cluster NAME names. It is read from standard input."""
    address = f"clusters/{name}/metrics-token"
    if is_deleted:
        client_of(choice).delete(address)
        click.echo("The token was deleted.")
        return
    hidden = sys.stdin.isatty()
    token = click.prompt("Token", hide_input=True) if hidden else sys.stdin.readline().strip()
    client_of(choice).put(address, {"token": token})
    click.echo("The token is stored.")


def _print_health(found: dict[str, Any]) -> None:
    """Print the result. Exits with 1 if anything is missing, for scripts."""
    _tell_health(found)
    if not found["is_whole"]:
        click.get_current_context().exit(1)
    click.echo("The connection works. No permission is missing.")


def _tell_health(found: dict[str, Any]) -> None:
    if found["problem"]:
        click.secho(" ".join(filter(None, (found["sentence"], strip_control_codes(found["detail"])))), fg="red")
        return
    if found["version"]:
        click.echo(f"Version: {strip_control_codes(found['version'])}")
    if found["has_namespace"] is False:
        click.secho("The namespace does not exist.", fg="red")
    if fault := found.get("metrics_fault"):
        click.secho(f"Prometheus is not used: {strip_control_codes(fault)}", fg="red")
    for right in found["missing"]:
        click.secho(f"Missing permission: {strip_control_codes(right)}", fg="red")
