"""What an admin who acts for somebody can reach: what its route's access opens to that. All else is closed.

Open is the work itself. Closed is who the person is (password, factors, tokens, browsers, identities), where they hear
of things, whom they let in and how they set a tenant up; so are REST and everything that takes tokens.
"""

from django.urls import ResolverMatch

from hekla.pages import registry

END, SIGN_OUT = "accounts:end_acting", "accounts:sign_out"
AS_ONESELF = frozenset({END, SIGN_OUT})


def is_open(name: str, verb: str) -> bool:
    """Whether this address answers by this verb to somebody who acts for another."""
    access = registry.routes().get(name)
    return access is not None and access.is_open_to_impersonation(verb)


def name_of(match: ResolverMatch | None) -> str:
    """The name of an address; empty for none."""
    return match.view_name if match else ""
