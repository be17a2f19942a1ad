"""What a page gives to be kept."""

from django.http import HttpResponse


def manifest(text: str, name: str) -> HttpResponse:
    """A manifest as a file of this name."""
    response = HttpResponse(text, content_type="application/yaml; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}.yaml"'
    return response
