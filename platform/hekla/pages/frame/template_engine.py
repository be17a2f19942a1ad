"""Django's templates, with the tags of Django and of the `builtins` in the settings.

Django itself imports the tags of all installed packages before the first page. Those of REST framework alone would
bring a hundred modules, and no template here uses them.
"""

from pkgutil import iter_modules

from django import templatetags
from django.template.backends.django import DjangoTemplates


class HeklaTemplates(DjangoTemplates):
    """The engine of all pages."""

    def get_templatetag_libraries(self, custom_libraries: dict[str, str]) -> dict[str, str]:
        """The libraries for `{% load %}`, by name."""
        found = {one.name: f"{templatetags.__name__}.{one.name}" for one in iter_modules(templatetags.__path__)}
        return {**found, **custom_libraries}
