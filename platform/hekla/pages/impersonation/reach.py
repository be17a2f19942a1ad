"""What somebody who acts for a person can reach. What is not named here is closed, whatever comes to be added.

Open is the work itself. Closed is who the person is (password, factors, tokens, browsers, identities), where they hear
of things, whom they let in and how they set a tenant up; so are REST and everything that takes tokens.
"""

from django.urls import ResolverMatch

END, SIGN_OUT = "accounts:end_acting", "accounts:sign_out"
AS_ONESELF = frozenset({END, SIGN_OUT})
_PARTS = frozenset(
    {
        "batches",
        "clusters",
        "demonstrations",
        "flows",
        "gallery",
        "help",
        "jobs",
        "live",
        "queues",
        "schedules",
        "search",
        "spans",
        "usage",
    }
)
_PAGES = frozenset(
    {
        "design",
        "exposure",
        "favicon",
        "health",
        "home",
        "home_needs",
        "job_ease",
        "job_unblock",
        "jobs_what_if",
        "jobs_what_if_take",
        "jobs_what_if_when",
        "run_example",
        "set_language",
        "tenancy:switch",
    }
)
_TO_LOOK_AT = frozenset(
    {
        "audit",
        "departments:detail",
        "departments:list",
        "notifications:bell",
        "notifications:list",
        "roles",
        "tenancy:detail",
        "tenancy:list",
        "tenancy:quotas",
    }
)
_LOOKS = frozenset({"GET", "HEAD"})


def is_open(name: str, verb: str) -> bool:
    """Whether this address answers by this verb to somebody who acts for another."""
    part, _colon, _rest = name.rpartition(":")
    return part in _PARTS or name in _PAGES or (name in _TO_LOOK_AT and verb.upper() in _LOOKS)


def name_of(match: ResolverMatch | None) -> str:
    """The name of an address; empty for none."""
    return match.view_name if match else ""
