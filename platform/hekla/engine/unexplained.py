"""A session whose cycle decides as any other, but does not work out why jobs wait."""

from hekla.engine.session import Session


class UnexplainedSession(Session):
    """A session for simulations that read decisions only. Jobs that wait have one reason without numbers, or none."""

    is_explained = False
