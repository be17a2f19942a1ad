"""Jobs over REST: submission, lists, actions, events and secrets."""

import pytest

from hekla.apps.jobs.models import Job
from hekla.apps.secrets import selectors as secrets
from hekla.apps.secrets.models import JobSecrets
from hekla.domain import formats

JOBS = "/api/v1/jobs"
MANIFEST = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: from-yaml, namespace: elsewhere}
spec:
  minAvailable: 1
  tasks:
    - name: worker
      replicas: 1
      template:
        spec:
          containers: [{name: c, command: ["true"], resources: {requests: {cpu: 1}}}]
"""


def submit(client, document, **headers):
    return client.post(JOBS, document, format="json", **headers)


def yaml(client, text, query=""):
    return client.post(JOBS + query, text, content_type="application/yaml")


@pytest.fixture
def submitted(alice, a_job):
    return submit(alice, a_job).json()["job"]


def test_answer_describes_the_submitted_job(alice, a_job):
    answer = submit(alice, a_job)
    assert answer.status_code == 201
    body = answer.json()["job"]
    assert (body["name"], body["tenant"], body["queue"], body["owner"]) == ("train", "lab", "default", "alice")
    assert (body["phase"], body["is_final"], body["is_simulated"]) == ("pending", False, True)
    assert body["spec"] == a_job
    assert alice.get(f"{JOBS}/{body['uid']}").json() == body


def test_manifest_warns_about_ignored_fields(alice):
    answer = yaml(alice, MANIFEST)
    assert answer.status_code == 201
    assert answer.json()["job"]["name"] == "from-yaml"
    assert any("namespace" in warning for warning in answer.json()["warnings"])


def test_each_submission_has_another_generated_name_and_a_repeated_one_the_same(alice):
    text = MANIFEST.replace("name: from-yaml", "generateName: from-yaml-")
    names = [yaml(alice, text).json()["job"]["name"] for _ in range(2)]
    assert names[0] != names[1]
    assert all(name.startswith("from-yaml-") for name in names)
    first, again = (alice.post(JOBS, text, content_type="application/yaml", HTTP_IDEMPOTENCY_KEY="k") for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["job"]["uid"] == again.json()["job"]["uid"]


def test_dry_run_submits_nothing(alice, a_job):
    answer = alice.post(f"{JOBS}?dry_run=1", a_job, format="json")
    assert (answer.status_code, answer.json()["spec"]) == (200, a_job)
    assert not Job.objects.exists()


def test_dry_run_has_the_errors_of_a_submission(alice, a_job):
    wrong = {**a_job, "queue": "nowhere"}
    assert alice.post(f"{JOBS}?dry_run=1", wrong, format="json").json() == submit(alice, wrong).json()


def test_same_idempotency_key_returns_the_same_job(alice, bob, a_job):
    first = submit(alice, a_job, HTTP_IDEMPOTENCY_KEY="k")
    again = submit(alice, a_job, HTTP_IDEMPOTENCY_KEY="k")
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["job"]["uid"] == again.json()["job"]["uid"]
    other = submit(alice, {**a_job, "name": "other"}, HTTP_IDEMPOTENCY_KEY="k")
    assert (other.status_code, other.json()["code"]) == (409, "key_used")
    assert submit(bob, {**a_job, "name": "bobs"}, HTTP_IDEMPOTENCY_KEY="k").status_code == 201


def test_list_is_filtered_and_paged(alice, bob, a_job):
    for number in range(3):
        submit(alice, {**a_job, "name": f"a-{number}"})
    submit(bob, {**a_job, "name": "b"})
    first = alice.get(f"{JOBS}?limit=3").json()
    rest = alice.get(first["next"]).json()
    assert [job["name"] for job in first["results"] + rest["results"]] == ["b", "a-2", "a-1", "a-0"]
    assert rest["next"] is None
    assert [job["name"] for job in bob.get(f"{JOBS}?mine=1").json()["results"]] == ["b"]
    assert [job["name"] for job in bob.get(f"{JOBS}?name=a-1").json()["results"]] == ["a-1"]
    assert bob.get(f"{JOBS}?phase=running&phase=failed").json()["results"] == []
    assert len(bob.get(f"{JOBS}?tenant=lab&queue=default&phase=pending&phase=running").json()["results"]) == 4


def test_list_query_count_is_constant(alice, a_job, django_assert_max_num_queries):
    for number in range(12):
        submit(alice, {**a_job, "name": f"a-{number}"})
    with django_assert_max_num_queries(5):
        assert len(alice.get(JOBS).json()["results"]) == 12


def test_owner_aborts_and_deletes_a_job(alice, submitted):
    where = f"{JOBS}/{submitted['uid']}"
    refused = alice.delete(where)
    assert (refused.status_code, refused.json()["code"]) == (409, "refused")
    assert alice.post(f"{where}/actions", {"action": "AbortJob"}, format="json").json()["phase"] == "aborted"
    assert alice.delete(where).status_code == 204
    assert alice.delete(where).status_code == 204
    body = alice.get(where).json()
    assert body["deleted_at"] < body["logs_until"] < body["history_until"]
    assert alice.get(JOBS).json()["results"] == []
    assert [job["uid"] for job in alice.get(f"{JOBS}?deleted=1").json()["results"]] == [submitted["uid"]]
    again = alice.post(f"{where}/actions", {"action": "ResumeJob"}, format="json")
    assert (again.status_code, again.json()["code"]) == (409, "refused")


@pytest.mark.parametrize("action", ["SyncJob", "Explode", "", None, 7])
def test_internal_and_unknown_actions_are_refused(alice, submitted, action):
    answer = alice.post(f"{JOBS}/{submitted['uid']}/actions", {"action": action}, format="json")
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["path"] == "action"


def test_members_read_but_do_not_act(bob, submitted):
    where = f"{JOBS}/{submitted['uid']}"
    assert bob.get(where).json()["owner"] == "alice"
    answer = bob.post(f"{where}/actions", {"action": "AbortJob"}, format="json")
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert bob.delete(where).status_code == 403


@pytest.mark.parametrize("path", ["", "/events", "/pods/worker/0/log"])
def test_outsiders_get_404(charlie, submitted, path):
    assert charlie.get(f"{JOBS}/{submitted['uid']}{path}").status_code == 404


def test_outsiders_cannot_act(charlie, submitted, a_job):
    where = f"{JOBS}/{submitted['uid']}"
    assert charlie.delete(where).status_code == 404
    assert charlie.post(f"{where}/actions", {"action": "AbortJob"}, format="json").status_code == 404
    assert charlie.get(JOBS).json()["results"] == []
    assert charlie.post(f"{JOBS}?tenant=lab", a_job, format="json").status_code == 404


def test_events_follow_a_number(alice, submitted):
    where = f"{JOBS}/{submitted['uid']}/events"
    first = alice.get(where).json()
    assert [event["kind"] for event in first["events"]] == ["JobSubmitted"]
    assert "queue default" in first["events"][0]["sentence"]
    assert alice.get(f"{where}?after={first['next_after']}").json() == {
        "events": [],
        "next_after": first["next_after"],
    }
    alice.post(f"{JOBS}/{submitted['uid']}/actions", {"action": "AbortJob"}, format="json")
    kinds = [event["kind"] for event in alice.get(f"{where}?after={first['next_after']}&wait=5").json()["events"]]
    assert kinds[0] == "JobCommanded"


@pytest.mark.parametrize("query", ["after=x", "after=-1", "wait=26", "wait=nan"])
def test_invalid_event_queries_are_refused(alice, submitted, query):
    answer = alice.get(f"{JOBS}/{submitted['uid']}/events?{query}")
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["path"] == query.partition("=")[0]


def test_missing_log_returns_404(alice, submitted):
    assert alice.get(f"{JOBS}/{submitted['uid']}/pods/worker/0/log").status_code == 404


TFJOB = """
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: from-kubeflow}
spec:
  runPolicy: {activeDeadlineSeconds: 60, suspend: true}
  tfReplicaSpecs:
    Worker: {replicas: 1, template: {spec: {containers: [{name: tensorflow, command: ["true"]}]}}}
"""


def test_kubeflow_job_is_accepted_with_warnings(alice):
    answer = yaml(alice, TFJOB)
    assert answer.status_code == 201
    assert answer.json()["job"]["name"] == "from-kubeflow"
    assert [warning.partition(":")[0] for warning in answer.json()["warnings"]] == ["spec.runPolicy.suspend"]
    assert answer.json()["job"]["spec"]["active_deadline_seconds"] == 60


def act(client, job, **request):
    return client.post(f"{JOBS}/{job['uid']}/actions", request, format="json")


@pytest.mark.parametrize(
    ("document", "paths"),
    [
        ({"action": "RestartTask"}, ["task"]),
        ({"action": "RestartPod"}, ["task", "index"]),
        ({"action": "RestartPod", "task": "worker", "index": 1}, ["index"]),
        ({"action": "RestartPod", "task": "other", "index": 0}, ["task"]),
        ({"action": "RestartPartition", "task": "worker"}, ["index"]),
        ({"action": "AbortJob", "task": "worker"}, ["task"]),
        ({"action": "RestartPod", "task": "worker", "index": "x"}, ["index"]),
        ({"action": "RestartPod", "task": "worker", "pod": 1}, ["pod"]),
    ],
)
def test_restart_errors_name_task_and_index(alice, submitted, document, paths):
    answer = act(alice, submitted, **document)
    assert answer.status_code == 400
    assert [error["path"] for error in answer.json()["errors"]] == paths
    kinds = [event["kind"] for event in alice.get(f"{JOBS}/{submitted['uid']}/events").json()["events"]]
    assert kinds == ["JobSubmitted"]


def test_restart_of_a_part_is_recorded(alice, submitted):
    assert act(alice, submitted, action="RestartTask", task="worker").json()["phase"] == "pending"
    assert act(alice, submitted, action="RestartPod", task="worker", index=0).status_code == 200
    sentences = [event["sentence"] for event in alice.get(f"{JOBS}/{submitted['uid']}/events").json()["events"]]
    assert {"Restart of worker requested.", "Restart of worker-0 requested."} <= set(sentences)


JOBCONFIG = """
protocolVersion: 2
name: secretive
type: job
secrets: {token: open-sesame}
prerequisites: [{type: dockerimage, name: i, uri: image}]
taskRoles:
  main: {dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}, commands: ["run <% $secrets.token %>"]}
"""


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_secrets_are_stored_encrypted_and_not_returned(alice, form):
    if form == "yaml":
        answer = yaml(alice, JOBCONFIG)
    else:
        loaded = formats.load(JOBCONFIG)
        answer = submit(alice, {**loaded.spec.document(), "secrets": dict(loaded.secrets)})
    assert answer.status_code == 201
    assert "sesame" not in answer.content.decode()
    assert secrets.of_job(JobSecrets.objects.get().job_uid) == {"token": "open-sesame"}
    assert b"sesame" not in bytes(JobSecrets.objects.get().values)


def test_a_job_without_the_secrets_that_it_names_is_refused(alice):
    answer = submit(alice, formats.load(JOBCONFIG).spec.document())
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, "tasks.0.command")


@pytest.mark.parametrize("value", ["open-sesame", ["open-sesame"], {"a": 7}, {"a": None}, {"a": "open-sesame" * 9000}])
def test_invalid_secrets_are_not_echoed(alice, a_job, value):
    answer = submit(alice, {**a_job, "secrets": value})
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, "secrets")
    assert "sesame" not in answer.content.decode()


def test_copy_has_a_free_name_and_can_be_submitted(alice, submitted):
    copy = alice.get(f"{JOBS}/{submitted['uid']}/copy").json()
    assert (copy["spec"], copy["secrets"]) == ({**submitted["spec"], "name": "train-1"}, [])
    assert submit(alice, copy["spec"]).status_code == 201
