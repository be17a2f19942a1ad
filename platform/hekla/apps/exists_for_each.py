"""A condition on each row, for the first rows of a list."""

from django.db.models import Exists


class ExistsForEach(Exists):
    """Asks for each row: the database neither collects all rows of the subquery nor joins them."""

    template = "EXISTS(%(subquery)s OFFSET 0)"
