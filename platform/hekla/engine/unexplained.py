"""Sessions whose cycles decide as any other, but leave out what no decision depends on."""

from hekla.engine.session import Session


class UnexplainedSession(Session):
    """A session for simulations that read decisions only. Jobs that wait have one reason without numbers, or none."""

    is_explained = False


class AdmissionSession(UnexplainedSession):
    """The same where it is known that no pod can be placed, and the policy evicts none: it only admits jobs."""

    only_admits = True
