"""The routes that an admin can use while acting for a person: those whose access opens them. All others are closed.

The work itself is open. Closed are the person's account (password, factors, tokens, login sessions, identities), their
notifications, invitations, and the settings of tenants, as well as REST and everything that takes tokens.
"""

from django.urls import ResolverMatch

from hekla.pages import registry

END, SIGN_OUT = "accounts:end_acting", "accounts:sign_out"
AS_ONESELF = frozenset({END, SIGN_OUT})


def is_open(name: str, verb: str) -> bool:
    """Whether the route accepts this verb from an admin who acts for a person."""
    access = registry.routes().get(name)
    return access is not None and access.is_open_to_impersonation(verb)


def name_of(match: ResolverMatch | None) -> str:
    """The name of a route; empty for none."""
    return match.view_name if match else ""
