"""Conditional requests: If-None-Match saves a transfer, If-Match prevents lost updates."""

import pytest

QUEUE = "/api/v1/queues/default"


def test_unchanged_resource_returns_304(alice):
    first = alice.get(QUEUE)
    again = alice.get(QUEUE, HTTP_IF_NONE_MATCH=first["ETag"])
    assert (first.status_code, again.status_code, again.content) == (200, 304, b"")


def test_if_match_refuses_a_stale_change(root):
    etag = root.get(QUEUE)["ETag"]
    assert root.patch(QUEUE, {"weight": 2}, format="json", HTTP_IF_MATCH=etag).status_code == 200
    late = root.patch(QUEUE, {"weight": 3}, format="json", HTTP_IF_MATCH=etag)
    assert (late.status_code, late["Content-Type"]) == (412, "application/problem+json")
    assert "Read it again" in late.json()["detail"]
    assert root.get(QUEUE).json()["weight"] == 2


@pytest.mark.parametrize(("etag", "status"), [("*", 200), ('"nonsense"', 412), ("rubbish", 412), ("", 200)])
def test_other_if_match_values(root, etag, status):
    assert root.patch(QUEUE, {"weight": 2}, format="json", HTTP_IF_MATCH=etag).status_code == status


def test_if_match_does_not_reveal_hidden_resources(alice):
    assert alice.patch("/api/v1/queues/theirs", {}, format="json", HTTP_IF_MATCH="*").status_code == 404


def test_stale_delete_is_refused(alice, a_job):
    address = f"/api/v1/jobs/{alice.post('/api/v1/jobs', a_job, format='json').json()['job']['uid']}"
    assert alice.delete(address, HTTP_IF_MATCH='"before"').status_code == 412
    assert alice.get(address).status_code == 200


def test_etag_of_a_compressed_answer_can_be_used(root) -> None:
    answer = root.get(QUEUE, HTTP_ACCEPT_ENCODING="gzip")
    assert answer["Content-Encoding"] == "gzip"
    assert root.patch(QUEUE, {"weight": 2}, format="json", HTTP_IF_MATCH=answer["ETag"]).status_code == 200
