"""Quotas of tenants and members, and their usage."""

from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.servers import ServerOptions

_NONE = "none"


class _Bound(click.ParamType[int | None]):
    """A whole number, or `none` for no limit."""

    name = "number|none"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | None:  # noqa: ANN401
        return None if value == _NONE else click.IntRange(0).convert(value, param, ctx)


BOUND = _Bound()


class _Amounts(click.ParamType[dict[str, str]]):
    """Amounts by resource, or `none` for no limit."""

    name = "name=amount,…|none"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, str]:  # noqa: ANN401
        pairs = [] if value == _NONE else [one.partition("=") for one in value.replace(",", " ").split()]
        if not all(equals and amount for _name, equals, amount in pairs):
            self.fail("write for example nvidia.com/gpu=8,cpu=64,memory=256Gi", param, ctx)
        return {name: amount for name, _equals, amount in pairs}


@click.command()
@click.argument("tenant")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def show(choice: ServerOptions, tenant: str, as_json: bool) -> None:
    """Show the quotas and usage of a tenant (short name) and its members."""
    _print(client_of(choice).quotas(tenant), tenant, as_json=as_json)


@click.command()
@click.argument("tenant")
@click.option("--each", is_flag=True, help="Set the default quota of each member.")
@click.option("--member", metavar="USERNAME", help="Set the quota of this member. It replaces the default.")
@click.option("--jobs", type=BOUND, help="Maximum unfinished jobs.")
@click.option("--sessions", type=BOUND, help="Maximum debugging sessions.")
@click.option("--gpu-hours", type=BOUND, help="GPU-hours per month, on cards of any kind together.")
@click.option("--at-once", "resources", type=_Amounts(), help="Maximum resources allocated at once in each cluster.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def set_quota(
    choice: ServerOptions, /, tenant: str, each: bool, member: str | None, as_json: bool, **bounds: object
) -> None:
    """Set a quota of TENANT (its short name), of each of its members, or of one of them.

    Limits that you do not name stay unchanged. `none` removes a limit. Operators and platform admins set the quota of
    the tenant. Tenant admins set those of members.
    """
    if each and member:
        raise click.UsageError("Either --each or --member.")
    chosen = {name: value for name, value in bounds.items() if _is_set(name)}
    if not chosen:
        raise click.UsageError("Set at least one limit, for example --jobs 10.")
    whose = {"of": "one", "username": member} if member else {"of": "each" if each else "tenant"}
    _print(client_of(choice).put(f"tenants/{tenant}/quotas", {**whose, **chosen}), tenant, as_json=as_json)


def _is_set(name: str) -> bool:
    source = click.get_current_context().get_parameter_source(name)
    return source is not click.core.ParameterSource.DEFAULT


def _print(found: list[dict[str, Any]], tenant: str, *, as_json: bool) -> None:
    if as_json:
        output.as_json(found)
        return
    rows = [
        (
            row["username"] or tenant,
            _part(str(row["jobs"]), row["most_jobs"]),
            _part(str(row["sessions"]), row["most_sessions"]),
            _hours(row),
            _at_once(row),
        )
        for row in found
    ]
    output.table(
        ("QUOTA OF", "UNFINISHED JOBS", "DEBUGGING SESSIONS", "GPU-HOURS THIS MONTH", "RESOURCES"),
        rows,
        "There are no quotas.",
    )


def _part(used: str, most: int | None) -> str:
    return used if most is None else f"{used} of {most}"


def _hours(row: dict[str, Any]) -> str:
    """The hours on all cards; with those of each resource if there are several."""
    hours = row["card_hours"]
    parts = ", ".join(f"{name} {hours[name]:.1f}" for name in sorted(hours))
    return _part(f"{row['gpu_hours']:.1f}", row["most_gpu_hours"]) + (f" ({parts})" if len(hours) > 1 else "")


def _at_once(row: dict[str, Any]) -> str:
    """The limits, and what is allocated of them in each cluster."""
    parts = [f"at most {output.amounts(row['most_resources'])}"] if row["most_resources"] else []
    for cluster, held in row["resources"].items() if parts else ():
        used = {name: amount for name, amount in held.items() if name in row["most_resources"]}
        parts.append(f"{cluster}: {output.amounts(used)}")
    return "; ".join(parts) or "–"
