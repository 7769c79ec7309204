"""The commands of `marvec vertex`, on a stand-in at our own seam (`vertex_google`): what they print, and how they end.

tests/cloud runs them against servers, with Google's own clients.
"""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from google.cloud.aiplatform_v1 import DeployModelRequest
from google.rpc.code_pb2 import Code
from google.rpc.status_pb2 import Status

from marvec_cli.main import app
from tests.unit.vertex_google import Google
from tests.unit.vertex_samples import ENDPOINT, IMAGE, MODEL, deployed, endpoint, settings, two_versions, version
from vertex import upload
from vertex.found import Found

FILE = f"""
project: my-project
region: europe-west1
model: {{name: minilm, image: "{IMAGE}"}}
endpoint: {{name: search}}
"""
ON_ENDPOINT = f"endpoint: https://europe-west1-aiplatform.googleapis.com/v1/{ENDPOINT}"
COMMANDS = ("upload", "deploy", "predict", "batch-predict", "traffic", "rollback", "status", "undeploy", "clean-up")


class Marvec:
    """The command line, in a folder with a settings file, on what exists."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.google = Google()
        self._capsys = capsys

    def __call__(self, *arguments: str, status: int = 0) -> tuple[list[str], list[str]]:
        """Run a command; returns the lines of stdout and stderr."""
        with pytest.raises(SystemExit) as end:
            app(["vertex", *arguments])
        out, err = self._capsys.readouterr()
        assert end.value.code == status, (out, err)
        return out.splitlines(), err.splitlines()


@pytest.fixture
def marvec(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Marvec:
    """Return the command line; nothing sleeps, and nothing exists."""
    marvec = Marvec(capsys)
    monkeypatch.setattr("vertex.work.Api", lambda _: marvec.google)
    monkeypatch.setattr("vertex.carry_out.time", SimpleNamespace(sleep=lambda _: None))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vertex.yaml").write_text(FILE)
    return marvec


def test_help_lists_the_commands(marvec: Marvec) -> None:
    out, _ = marvec("--help")
    assert [line.split()[1] for line in out if line.startswith("│ ") and line[2] not in " -"] == list(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example(marvec: Marvec, command: str) -> None:
    out, _ = marvec(command, "--help")
    assert any(line.strip().startswith(f"Example: marvec vertex {command}") for line in out)
    assert any("--settings" in line and "[default: vertex.yaml]" in line for line in out)


def test_from_nothing_to_an_endpoint_and_back(marvec: Marvec) -> None:
    assert marvec("upload")[0] == ["uploaded: minilm, version 1", "", "next: marvec vertex deploy"]
    out, err = marvec("upload")
    assert out[0] == "as before: minilm, version 1"
    assert err == ["the newest version has these settings; --new-version uploads another"]
    assert marvec("upload", "--new-version")[0][0] == "uploaded: minilm, version 2"
    assert marvec("deploy", "--version", "1")[0][:2] == [
        "version 1 on n1-standard-4: 100 % of the requests",
        ON_ENDPOINT,
    ]
    assert marvec("deploy", "--traffic", "10")[0][:3] == [
        "version 1 on n1-standard-4: 90 % of the requests",
        "version 2 on n1-standard-4: 10 % of the requests",
        ON_ENDPOINT,
    ]
    assert marvec("traffic", "1=50", "2=50")[0][0] == "version 1 on n1-standard-4: 50 % of the requests"
    assert marvec("rollback")[0][:2] == [
        "version 1 on n1-standard-4: 100 % of the requests",
        "version 2 on n1-standard-4: 0 % of the requests",
    ]
    assert marvec("undeploy")[0] == ["version 1 on n1-standard-4: 100 % of the requests", ON_ENDPOINT]
    out, err = marvec("clean-up", "--yes")
    assert out == ["nothing is left of minilm in my-project"]
    assert err[:3] == [
        "minilm-1 on n1-standard-4, with 100 % of the requests, leaves the endpoint",
        "the endpoint search is deleted: its callers get 404",
        "the model minilm is deleted, with its versions 1, 2",
    ]
    assert marvec("clean-up") == (["nothing is left of minilm in my-project"], [])


def test_results_for_scripts(marvec: Marvec) -> None:
    out, _ = marvec("upload", "--json")
    assert json.loads(out[0]) == {
        "model": MODEL,
        "version": "1",
        "aliases": [],
        "image": IMAGE,
        "uploaded": "2026-01-01 00:01",
    }
    out, _ = marvec("deploy", "--json")
    assert [(one["version"], one["traffic"]) for one in json.loads(out[0])["deployed"]] == [("1", 100)]
    out, _ = marvec("clean-up", "--yes", "--json")
    assert [json.loads(line) for line in out] == [{"left": []}]


def test_a_dry_run_is_a_script_and_changes_nothing(marvec: Marvec) -> None:
    assert marvec("deploy", "--dry-run", status=4)[1] == ["error: the model is not uploaded: marvec vertex upload"]
    marvec.google = Google(Found((version(1),)))
    out, _ = marvec("deploy", "--dry-run")
    assert [line for line in out if not line.startswith("#")] == [
        "gcloud ai endpoints create --endpoint-id=search --display-name=search --labels=made-with=marvec "
        "--project=my-project --region=europe-west1",
        "gcloud ai endpoints deploy-model search --model=minilm@1 --display-name=minilm-1 --machine-type=n1-standard-4 "
        "--min-replica-count=1 --max-replica-count=1 --traffic-split=0=100 --project=my-project --region=europe-west1",
    ]
    assert [line for line in out if not line.startswith(("#  ", "gcloud"))] == [
        "# creation of the endpoint search",
        "# deployment of minilm@1",
    ]
    assert marvec.google.sent == []
    marvec.google = Google(two_versions({"22": 100}))
    assert marvec("traffic", "2=100", "--dry-run")[0] == ["# nothing is to be done"]


def test_a_batch_prediction_can_be_shown(marvec: Marvec) -> None:
    marvec.google = Google(two_versions({"22": 100}))
    out, _ = marvec("batch-predict", "--from", "gs://bucket/in.jsonl", "--to", "gs://bucket/out", "--dry-run")
    assert out[0] == "# batch prediction of minilm@2"
    assert out[-1].startswith("curl -sS --fail-with-body ")


def test_a_version_that_was_uploaded_with_other_settings_is_noted(marvec: Marvec) -> None:
    marvec.google = Google(Found((version(1),)))
    assert marvec("deploy")[1][0] == (
        "note: version 1 was uploaded with other settings of the model than the file has now; marvec vertex upload "
        "makes a version with these"
    )
    labels = {"made-with": "marvec", upload.SETTINGS_LABEL: upload.digest(settings())}
    marvec.google = Google(Found((version(1, labels=labels),)))
    assert marvec("deploy")[1][0] == "creation of the endpoint search …"


@pytest.mark.parametrize("named", [["1", "1"], ["1", "11"], ["11", "1", "11"]])
def test_a_version_that_is_named_twice_is_undeployed_once(marvec: Marvec, named: list[str]) -> None:
    marvec.google = Google(two_versions({"22": 100}))
    assert marvec("undeploy", *named)[0] == ["version 2 on n1-standard-4: 100 % of the requests", ON_ENDPOINT]
    assert len(marvec.google.sent) == 1


@pytest.mark.parametrize(
    ("arguments", "status", "reason"),
    [
        (["traffic", "1"], 1, "1: expected VERSION=SHARE, such as 2=50"),
        (["traffic", "1=-5", "2=105"], 1, "1=-5: expected VERSION=SHARE, such as 2=50"),
        (["traffic", "1=50", "2=40"], 1, "the shares of traffic sum to 90: expected 100"),
        (["traffic", "3=100"], 4, "version 3 is not deployed on the endpoint; deployed: 1, 2"),
        (["deploy", "--version", "3"], 4, "there is no version 3; there are 1, 2 (default)"),
        (["predict"], 1, "what is to be asked: texts on the command line, or --file FILE"),
        (["predict", "a", "--file", "a.txt"], 1, "texts on the command line, and --file: expected one of the two"),
        (
            ["status", "--settings", "none.yaml"],
            1,
            "there is no none.yaml: write one as docs/vertex.md shows, or name it with --settings",
        ),
    ],
)
def test_what_is_refused_is_one_line(marvec: Marvec, arguments: list[str], status: int, reason: str) -> None:
    marvec.google = Google(two_versions({"11": 100}))
    assert marvec(*arguments, status=status) == ([], [f"error: {reason}"])


def test_nothing_to_roll_back(marvec: Marvec) -> None:
    assert marvec("rollback", status=4) == ([], ["error: nothing is deployed on the endpoint"])


def test_a_failed_operation_has_its_exit_status(marvec: Marvec) -> None:
    marvec.google = Google(Found((version(1),), endpoint()))
    marvec.google.failing = {DeployModelRequest: Status(code=Code.INTERNAL, message="out of luck")}
    assert marvec("deploy", "--version", "1", status=6)[1][-1] == "error: deployment of minilm@1 failed: out of luck"


def test_ctrl_c_ends_with_its_exit_status(marvec: Marvec, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("vertex.carry_out.time", SimpleNamespace(sleep=interrupted))
    assert marvec("upload", status=130)[1] == [
        "upload of minilm …",
        f"upload of minilm goes on at Google as {MODEL}/operations/1: the same command again follows it to its end",
    ]


def test_a_question_comes_before_the_end(marvec: Marvec, monkeypatch: pytest.MonkeyPatch) -> None:
    marvec.google = Google(Found((), endpoint(deployed("11", 1), split={"11": 100})))
    monkeypatch.setattr("sys.stdin", StringIO("\n"))
    out, err = marvec("clean-up", status=1)
    assert out == []
    assert err == [
        "minilm-1 on n1-standard-4, with 100 % of the requests, leaves the endpoint",
        "the endpoint search is deleted: its callers get 404",
        "Do all of this? [y/N]: nothing was changed",
    ]
    assert marvec.google.sent == []


def test_a_version_that_has_left_already_is_no_error(marvec: Marvec) -> None:
    marvec.google = Google(Found((version(1), version(2)), endpoint(deployed("22", 2), split={"22": 100})))
    assert marvec("undeploy", "1")[0][0] == "version 2 on n1-standard-4: 100 % of the requests"
    assert marvec.google.sent == []
    assert marvec("undeploy", "3", status=4)[1] == ["error: version 3 is not deployed on the endpoint; deployed: 2"]


def test_a_rollback_is_not_done_twice(marvec: Marvec) -> None:
    marvec.google = Google(two_versions({"22": 100}))
    marvec("rollback")
    out, err = marvec("rollback")
    assert err == ["the newest version has no traffic, so there is nothing to take back; see traffic"]
    assert out[0] == "version 1 on n1-standard-4: 100 % of the requests"
    assert len(marvec.google.sent) == 1


def test_what_is_uploaded_meanwhile_is_what_is_deployed(marvec: Marvec) -> None:
    marvec.google = Google(Found((version(1),)))
    marvec.google.begin(upload.plan(settings(), Found((version(1),)))[0])
    assert marvec("deploy")[0][0] == "version 2 on n1-standard-4: 100 % of the requests"


def test_the_first_version_takes_all_and_it_is_told(marvec: Marvec) -> None:
    marvec.google = Google(Found((version(1),)))
    assert "note: the first version on an endpoint takes all requests" in marvec("deploy", "--traffic", "10")[1]


def test_the_lines_of_an_upload_put_its_schemas_first(marvec: Marvec, tmp_path: Path) -> None:
    (tmp_path / "vertex.yaml").write_text(FILE.replace("model: {", "model: {schema_folder: 'gs://bucket/schemas', "))
    lines = [line for line in marvec("upload", "--dry-run")[0] if not line.startswith("#")]
    assert [line.split()[:4] for line in lines[:3]] == [["gcloud", "storage", "cp", "--no-clobber"]] * 3
    assert lines[3].startswith("curl -sS --fail-with-body ")


def test_the_lines_of_a_status(marvec: Marvec) -> None:
    assert marvec("status", "--dry-run")[0] == [
        "gcloud ai models list-version minilm --project=my-project --region=europe-west1",
        "gcloud ai endpoints describe search --project=my-project --region=europe-west1",
    ]


def test_the_lines_of_a_large_prediction_are_several(marvec: Marvec, tmp_path: Path) -> None:
    (tmp_path / "large").write_text("a" * 1_000_000 + "\n" + "b" * 1_000_000 + "\n")
    out = marvec("predict", "--file", "large", "--dry-run")[0]
    assert [line.split()[:4] for line in out if line.startswith("gcloud")] == [
        ["gcloud", "ai", "endpoints", "predict"]
    ] * 2
