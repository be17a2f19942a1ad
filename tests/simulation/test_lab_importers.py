"""Files of other schedulers become workloads: sizes, attempts, times, and what cannot be read is counted."""

import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from hekla.cli.main import hekla
from hekla.domain.resources import Resources
from hekla.simulation.lab import synthetic
from hekla.simulation.lab.importers import FORMATS, InvalidTrace, read_trace, slurm
from hekla.simulation.lab.importers.traces import TraceNotes
from hekla.simulation.lab.workload import HOUR, SECOND, Workload, WorkloadNote

SACCT = """\
JobID|User|Account|Partition|Submit|Start|End|State|NNodes|ReqTRES|NodeList
1|ann|bio|gpu|2026-01-01T00:00:00|2026-01-01T01:00:00|2026-01-01T03:00:00|COMPLETED|2|cpu=16,gres/gpu=4,mem=64G|a[1-2]
1.batch|ann|bio|gpu|2026-01-01T00:00:00|2026-01-01T01:00:00|2026-01-01T03:00:00|COMPLETED|1|cpu=8|a1
2|ben|bio|gpu|2026-01-01T00:10:00|Unknown|Unknown|PENDING|1|cpu=8,gres/gpu:a100=1,mem=8000M|None assigned
3|ben|bio|gpu|2026-01-01T00:20:00|2026-01-01T01:00:00|2026-01-01T02:00:00|REQUEUED|1|cpu=8,gres/gpu=1|b1
3|ben|bio|gpu|2026-01-01T00:20:00|2026-01-01T02:30:00|Unknown|RUNNING|1|cpu=8,gres/gpu=1|b1
4|eve|bio|gpu|2026-01-01T00:30:00|2026-01-01T02:00:00|2026-01-01T01:00:00|FAILED|1|cpu=8|b1
5|eve|bio|gpu|2026-01-01T00:40:00|2026-01-01T02:00:00|2026-01-01T02:00:00|CANCELLED by 7|1|cpu=8|None
6|eve|bio|gpu|2026-13-01T00:40:00|x|y|FAILED|1|cpu=8|None
7|eve|bio|gpu|2026-01-01T00:40:00|x
8|eve|bio|big|2026-01-01T00:50:00|2026-01-01T02:00:00|2026-01-01T03:00:00|COMPLETED|1|cpu=8,gres/gpu=64|b1
"""
HELIOS = """\
job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
j1,u1,vc1,16,32,2,COMPLETED,2020-04-01 00:00:00,2020-04-01 01:00:00,2020-04-01 02:00:00,3600,3600
j2,u1,vc2,1,4,1,FAILED,2020-04-01 00:10:00,2020-04-01 00:20:00,,600,600
j3,u2,vc2,1,4,1,CANCELLED,2020-04-01 00:20:00,,2020-04-01 00:30:00,0,600
"""
PHILLY = [
    {
        "status": "Pass", "vc": "v1", "jobid": "a1", "user": "u", "submitted_time": "2017-10-07 03:40:50",
        "attempts": [
            {"start_time": "2017-10-07 03:41:00", "end_time": "2017-10-07 04:41:00",
             "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu0", "gpu1"]}]},
            {"start_time": "2017-10-07 05:00:00", "end_time": "2017-10-07 05:30:00",
             "detail": [{"ip": "m3", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu0", "gpu1"]}]},
        ],
    },
    {"status": "Killed", "vc": "v1", "jobid": "a2", "user": "u", "submitted_time": "2017-10-07 03:45:00",
     "attempts": []},
    {"status": "Pass", "jobid": "a3"},
    "no job",
]  # fmt: skip
ALIBABA = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p1,12000,16384,1,1000,,LS,Running,0,7200,60
p2,6000,8192,1,460,,BE,Succeeded,30,3600,30
p3,6000,8192,0,0,,BE,Pending,40,90,
"""


def workload(text: str, form: str) -> Workload:
    return read_trace(io.BytesIO(text.encode()), form, synthetic.nodes(4))


def test_sacct_attempts_steps_and_jobs_without_end() -> None:
    found = workload(SACCT, "sacct")
    by_name = {job.group.name: job for job in found.jobs}
    assert set(by_name) == {"1", "2", "3", "4", "5"}
    first = by_name["1"]
    request = {"cpu": "8", "nvidia.com/gpu": "2", "memory": "32Gi", "pods": "1"}
    assert [pod.request for pod in first.group.pods] == [Resources.parse(request)] * 2
    assert first.runs == ((2 * HOUR,),) * 2
    assert [one.node for one in first.history.binds] == ["a1", "a2"]
    assert (first.history.started or 0) - first.submitted == HOUR
    assert by_name["2"].group.pods[0].request.amount("nvidia.com/gpu") == 1000
    assert by_name["3"].runs == ((HOUR, None),)
    assert by_name["4"].runs == ((),)
    assert by_name["5"].leaves == by_name["5"].submitted + 80 * 60 * SECOND
    assert (first.tenant, first.person, first.group.queue) == ("bio", "ann", "gpu")
    notes = found.notes
    assert notes[WorkloadNote.UNREADABLE] == 2
    assert (notes[WorkloadNote.NO_END], notes[WorkloadNote.ENDED_BEFORE_START], notes[WorkloadNote.TOO_LARGE]) == (
        1,
        1,
        1,
    )
    assert WorkloadNote.NO_ZONE in notes


def test_short_lines_do_not_name_endless_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of nodes may be much longer than its text: more names than pods are not read, nor more than bounded."""

    def names(*rows: tuple[int, str]) -> list[int]:
        times = "2026-01-01T00:00:00|2026-01-01T01:00:00|2026-01-01T03:00:00|COMPLETED"
        lines = [f"{at}|ann|bio|gpu|{times}|{pods}|cpu=1|{nodes}" for at, (pods, nodes) in enumerate(rows)]
        text = "\n".join([SACCT.partition("\n")[0], *lines])
        return [len(job.attempts[0].nodes) for job in slurm.read(io.BytesIO(text.encode()), TraceNotes())]

    assert names((1, "a[1-9999]"), (3, "a[1-3]"), (2, "x" * 300 + "[1-2]")) == [0, 3, 0]
    monkeypatch.setattr(slurm, "MAX_PODS", 5)
    assert names((3, "a[1-3]"), (3, "a[1-3]"), (2, "b,c")) == [3, 0, 2]


def test_helios_divides_cards_among_nodes() -> None:
    found = workload(HELIOS, "helios")
    assert [len(job.group.pods) for job in found.jobs] == [2, 1, 1]
    assert found.jobs[0].group.pods[0].request.amount("nvidia.com/gpu") == 8000
    assert found.jobs[1].runs == ((600 * SECOND,),)
    assert (found.jobs[2].runs, found.jobs[2].leaves) == (((),), found.jobs[2].submitted + 600 * SECOND)
    assert [queue.name for queue in found.state.queues] == ["vc1", "vc2"]


def test_philly_attempts_are_those_of_the_job() -> None:
    found = workload(json.dumps(PHILLY), "philly")
    first, second = found.jobs
    assert first.runs == ((HOUR, HOUR // 2),) * 2
    assert [one.node for one in first.history.binds] == ["m1", "m2", "m3", "m2"]
    assert first.group.pods[0].request.amount("nvidia.com/gpu") == 2000
    assert second.leaves == second.submitted
    assert found.notes[WorkloadNote.UNREADABLE] == 2


def test_alibaba_has_parts_of_cards() -> None:
    found = workload(ALIBABA, "alibaba")
    assert [job.group.pods[0].request.amount("nvidia.com/gpu") for job in found.jobs] == [1000, 460, 0]
    assert [job.runs for job in found.jobs] == [((7140 * SECOND,),), ((3570 * SECOND,),), ((),)]


DEEP = '[{"submitted_time": "2017-10-07 03:40:50", "attempts": [], "jobid": ' + "[" * 1000 + "]" * 1000 + "}]"


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    "text", ["", "a,b\n1,2\n", "[]", "{", "\0\0\0", "x" * 200_000, '[{"attempts": 1}]', "\n\n", DEEP]
)
def test_other_files_are_refused(form: str, text: str) -> None:
    with pytest.raises(InvalidTrace):
        workload(text, form)


@given(form=st.sampled_from(sorted(FORMATS)), at=st.integers(0, 600), junk=st.text(max_size=12))
@settings(max_examples=examples(60), deadline=None)
def test_damaged_files_raise_nothing_else(form: str, at: int, junk: str) -> None:
    text = {"sacct": SACCT, "helios": HELIOS, "philly": json.dumps(PHILLY), "alibaba": ALIBABA}[form]
    try:
        found = workload(text[:at] + junk + text[at:], form)
    except InvalidTrace:
        return
    assert found.jobs


def test_command_line_compares_two_runs(tmp_path: Path) -> None:
    file = tmp_path / "jobs.txt"
    file.write_text(SACCT)
    size = "1:cpu=32,memory=128Gi,nvidia.com/gpu=8"
    options = ["lab", "trace", str(file), "--format", "sacct", "--nodes", size]
    answer = CliRunner().invoke(hekla, [*options, "--weight", "gpu=2", "--json"])
    assert answer.exit_code == 0, answer.output
    assert set(json.loads(answer.output)["columns"]) == {"recorded", "unchanged", "changed"}
    for wrong in (["--nodes", "x:cpu=1"], ["--weight", "nowhere=2"], ["--format", "philly"]):
        assert CliRunner().invoke(hekla, [*options, *wrong]).exit_code != 0
