"""Notifications, and their settings for a job."""

from collections.abc import Callable
from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.servers import ServerOptions
from hekla.lib.text import strip_control_codes

_MOMENTS = ("started", "ended", "failed", "waits", "evicted", "deleting")
_WAYS = ("page", "mail", "webhook")


def notification_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the notification options for a submitted job, with the names of the REST parameters."""
    moments, channels = click.Choice((*_MOMENTS, "nothing")), click.Choice(_WAYS)
    for option in (
        click.option(
            "--notify-after", type=click.IntRange(1), help="Minutes until a pending job counts as waiting long."
        ),
        click.option("--notify-by", multiple=True, type=channels, help="Notification channel. May be repeated."),
        click.option("--notify", multiple=True, type=moments, help="Event to notify about. May be repeated."),
    ):
        command = option(command)
    return command


@click.command()
@click.option("--unread", is_flag=True, help="Only unread notifications.")
@click.option("--read", is_flag=True, help="Mark the printed notifications as read.")
@click.option("--limit", type=click.IntRange(1, 1_000), default=20, show_default=True, help="Maximum number of rows.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_notifications(choice: ServerOptions, unread: bool, read: bool, limit: int, as_json: bool) -> None:
    """List your notifications, newest first."""
    client = client_of(choice)
    found = client.pages("notifications", limit, unread="1" if unread else None)
    if as_json:
        output.as_json(found)
    else:
        rows = [
            (output.moment(row["at"]), "" if row["read_at"] else "new", strip_control_codes(row["sentence"]))
            for row in found
        ]
        output.table(("TIME", "", "NOTIFICATION"), rows, "No notifications.")
    if read and found:
        client.post("notifications", {"up_to": found[0]["number"]})


@click.command()
@click.argument("job")
@click.option(
    "--on", "moments", multiple=True, type=click.Choice(_MOMENTS), help="Event to notify about. May be repeated."
)
@click.option(
    "--by", "channels", multiple=True, type=click.Choice(_WAYS), help="Notification channel. May be repeated."
)
@click.option("--after", "minutes", type=click.IntRange(1), help="Minutes until a pending job counts as waiting long.")
@click.option("--default", is_flag=True, help="Use your default notification settings.")
@click.pass_obj
def set_notifications(
    choice: ServerOptions,
    job: str,
    moments: tuple[str, ...],
    channels: tuple[str, ...],
    minutes: int | None,
    default: bool,
) -> None:
    """Choose the notifications about JOB (a name or uid): hekla job set-notifications train --on failed --by mail

    Without --on you get none.
    """
    client = client_of(choice)
    found = client.job(job)
    where = f"jobs/{found['uid']}/notifications"
    if default:
        client.delete(where)
        click.echo(f"{found['name']} uses your default notification settings.")
        return
    body: dict[str, Any] = {"moments": list(moments), "channels": list(channels or ("page",))}
    chosen = client.put(where, body | ({} if minutes is None else {"long_wait_minutes": minutes}))
    when = ", ".join(chosen["moments"]) or "nothing"
    click.echo(f"Notifications for {found['name']}: {when}. Channels: {', '.join(chosen['channels'])}.")
