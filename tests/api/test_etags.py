"""What was seen is not sent twice, and a change can be meant for what was seen only."""

import pytest

QUEUE = "/api/v1/queues/default"


def test_what_did_not_change_is_not_sent_again(alice):
    first = alice.get(QUEUE)
    again = alice.get(QUEUE, HTTP_IF_NONE_MATCH=first["ETag"])
    assert (first.status_code, again.status_code, again.content) == (200, 304, b"")


def test_a_change_is_made_to_what_was_seen(root):
    seen = root.get(QUEUE)["ETag"]
    assert root.patch(QUEUE, {"weight": 2}, format="json", HTTP_IF_MATCH=seen).status_code == 200
    late = root.patch(QUEUE, {"weight": 3}, format="json", HTTP_IF_MATCH=seen)
    assert (late.status_code, late["Content-Type"]) == (412, "application/problem+json")
    assert "Read it again" in late.json()["detail"]
    assert root.get(QUEUE).json()["weight"] == 2


@pytest.mark.parametrize(("mark", "status"), [("*", 200), ('"nonsense"', 412), ("rubbish", 412), ("", 200)])
def test_other_marks(root, mark, status):
    assert root.patch(QUEUE, {"weight": 2}, format="json", HTTP_IF_MATCH=mark).status_code == status


def test_what_is_not_there_for_one_stays_so(alice):
    assert alice.patch("/api/v1/queues/theirs", {}, format="json", HTTP_IF_MATCH="*").status_code == 404


def test_a_job_that_moved_on_is_not_deleted_by_who_saw_it_before(alice, a_job):
    address = f"/api/v1/jobs/{alice.post('/api/v1/jobs', a_job, format='json').json()['job']['uid']}"
    assert alice.delete(address, HTTP_IF_MATCH='"before"').status_code == 412
    assert alice.get(address).status_code == 200


def test_an_answer_that_was_compressed_on_its_way_can_be_changed(root) -> None:
    answer = root.get(QUEUE, HTTP_ACCEPT_ENCODING="gzip")
    assert answer["Content-Encoding"] == "gzip"
    assert root.patch(QUEUE, {"weight": 2}, format="json", HTTP_IF_MATCH=answer["ETag"]).status_code == 200
