"""What narrows a list of jobs: the options of the commands that are about many of them, called as REST calls them."""

from collections.abc import Callable

import click

_SORTS = [f"{sign}{word}" for word in ("submitted", "name", "phase", "priority", "pods") for sign in ("", "-")]
_FILTERS = (
    click.option("--phase", multiple=True, help="Only jobs in this phase; may be given several times."),
    click.option("--queue", help="Only jobs of this queue."),
    click.option("--tenant", help="Only jobs of this tenant (short name)."),
    click.option("--cluster", help="Only jobs of this cluster."),
    click.option("--owner", help="Only jobs of this person (user name)."),
    click.option("--kind", help="Only jobs of this kind."),
    click.option("--search", "q", metavar="TEXT", help="Part of the name, or of the owner's."),
    click.option("--priority-min", type=int, help="Only jobs of this priority or a higher one."),
    click.option("--priority-max", type=int, help="Only jobs of this priority or a lower one."),
    click.option("--submitted-after", metavar="WHEN", help="A day (2026-03-01), an instant, or an age (24h, 7d)."),
    click.option("--submitted-before", metavar="WHEN", help="Likewise."),
    click.option("--finished-after", metavar="WHEN", help="Likewise."),
    click.option("--finished-before", metavar="WHEN", help="Likewise."),
    click.option("--failed-pods", is_flag=True, flag_value="yes", default=None, help="Only jobs with a failed pod."),
    click.option("--reason", help="Only jobs that ended for this reason, or a pod of which did."),
    click.option("--mine", is_flag=True, flag_value="1", default=None, help="Only your own."),
)
_LISTING = (
    click.option("--deleted", is_flag=True, flag_value="1", default=None, help="Those that were deleted and are kept."),
    click.option("--sort", type=click.Choice(_SORTS), help="By what; with a minus the greatest first."),
)


def narrowing(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say which jobs."""
    for option in reversed(_FILTERS):
        command = option(command)
    return command


def listing(command: Callable[..., None]) -> Callable[..., None]:
    """Those, whether deleted ones are meant, and in which order."""
    for option in reversed(_LISTING):
        command = option(command)
    return narrowing(command)
