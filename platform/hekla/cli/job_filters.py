"""The filter options of commands for many jobs, with the names of the REST parameters."""

from collections.abc import Callable

import click

_SORTS = [f"{sign}{word}" for word in ("submitted", "name", "phase", "priority", "pods") for sign in ("", "-")]
_FILTERS = (
    click.option("--phase", multiple=True, help="Filter by phase. May be repeated."),
    click.option("--queue", help="Filter by queue."),
    click.option("--tenant", help="Filter by tenant (short name)."),
    click.option("--cluster", help="Filter by cluster."),
    click.option("--owner", help="Filter by owner (user name)."),
    click.option("--kind", help="Filter by kind."),
    click.option("--search", "q", metavar="TEXT", help="Part of the job name or of the owner name."),
    click.option("--priority-min", type=int, help="Lowest priority."),
    click.option("--priority-max", type=int, help="Highest priority."),
    click.option("--submitted-after", metavar="WHEN", help="A day (2026-03-01), a time, or an age (24h, 7d)."),
    click.option("--submitted-before", metavar="WHEN", help="Same format as --submitted-after."),
    click.option("--finished-after", metavar="WHEN", help="Same format as --submitted-after."),
    click.option("--finished-before", metavar="WHEN", help="Same format as --submitted-after."),
    click.option("--failed-pods", is_flag=True, flag_value="yes", default=None, help="Only jobs with a failed pod."),
    click.option("--reason", help="Filter by failure reason of the job or of one of its pods."),
    click.option("--mine", is_flag=True, flag_value="1", default=None, help="Only your jobs."),
)
_LISTING = (
    click.option(
        "--deleted", is_flag=True, flag_value="1", default=None, help="Deleted jobs whose history is still kept."
    ),
    click.option("--sort", type=click.Choice(_SORTS), help="Sort order. A leading minus sorts descending."),
)


def filter_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that select jobs."""
    for option in reversed(_FILTERS):
        command = option(command)
    return command


def listing(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that select jobs, and those for deleted jobs and sort order."""
    for option in reversed(_LISTING):
        command = option(command)
    return filter_options(command)
