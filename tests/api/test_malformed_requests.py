"""Malformed requests return a problem with a sentence, and never a server error."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

JOBS = "/api/v1/jobs"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
FIELDS = st.sampled_from(["name", "tasks", "queue", "min_available", "plugins", "policies", "files", "priority"])


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(FIELDS, JSON, max_size=6))
def test_jobs_of_any_shape_are_refused(alice, document):
    answer = alice.post(f"{JOBS}?dry_run=1", document, format="json")
    assert answer.status_code in {400, 409}
    assert answer.json()["detail"]


@pytest.mark.parametrize(
    "query",
    ["name=%00", "%00=x", "queue=%00", "tenant=%F0%9F%8C%8B", "phase=nothing", "cursor=%00", "cursor=xx", "limit=-5"],
)
def test_list_with_invalid_filters(alice, query):
    assert alice.get(f"{JOBS}?{query}").status_code in {200, 400, 404}


@pytest.mark.parametrize(
    "text",
    [
        r'{"\ud800": 1}',
        r'{"name": "\ud800"}',
        '{"priority": 1e999}',
        '{"priority": ' + "9" * 5000 + "}",
        '{"name": "\\u0000"}',
        b'{"name": "\xff"}',
    ],
)
def test_almost_json_bodies_are_refused(alice, text):
    answer = alice.post(JOBS, text, content_type="application/json")
    assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")
    assert answer.json()["detail"]


@pytest.mark.parametrize("query", ["offset=9999999999999999999999", "limit=0", "attempt=99999999999", "offset=-1"])
def test_invalid_log_offsets_are_refused(alice, a_job, query):
    uid = alice.post(JOBS, a_job, format="json").json()["job"]["uid"]
    assert alice.get(f"{JOBS}/{uid}/pods/worker/0/log?{query}").status_code == 400


def test_huge_numbers_in_paths_return_404(alice, a_job):
    uid = alice.post(JOBS, a_job, format="json").json()["job"]["uid"]
    assert alice.get(f"{JOBS}/{uid}/pods/worker/99999999999999999999/log").status_code == 404
    assert alice.delete("/api/v1/tokens/99999999999999999999").status_code == 404


def test_requests_are_served_without_the_cache(alice, monkeypatch):
    from redis.exceptions import ConnectionError as Away

    from hekla.apps import limits

    def away(*_words, **_more):
        raise Away("no server")

    monkeypatch.setattr(limits.cache, "add", away)
    assert alice.get("/api/v1/me").status_code == 200
