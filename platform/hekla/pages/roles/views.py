"""The page of roles and their permissions."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from hekla.apps.tenancy import selectors
from hekla.pages.frame.people import person


@require_safe
def roles(request: HttpRequest) -> HttpResponse:
    """Show the permissions of each role to people who can assign roles."""
    return render(request, "tenancy/roles.html", {"tables": selectors.role_tables(person(request))})
