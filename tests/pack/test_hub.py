"""Models by their hub id, from a local server that answers as the hub does."""

from __future__ import annotations

import json
import random
import re
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.models.tiny import TinyModels
from tests.pack.conftest import environment, marvec
from tests.pack.hub_server import TOKEN, Hub, Repo, serve

COMMIT = "c0ffee" + "0" * 34

# What `marvec pack` does first, without what it does then: find the files and say which there are.
FIND = """
import json, sys
from archiver import checks, source
from marvec.errors import MarvecError
model, revision = sys.argv[1], sys.argv[2] or None
notes = []
try:
    found = source.find(model, revision, checks.read, notes.append)
except MarvecError as err:
    print(json.dumps({"error": str(err)}))
else:
    files = sorted(str(file.relative_to(found.folder)) for file in found.folder.rglob("*") if file.is_file())
    print(json.dumps({"id": found.id, "revision": found.revision, "files": files, "notes": notes}))
"""

NEEDED = [
    "1_Pooling/config.json",
    "2_Normalize/config.json",
    "README.md",
    "config.json",
    "config_sentence_transformers.json",
    "model.safetensors",
    "modules.json",
    "sentence_bert_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
]


def read(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.fixture(scope="module")
def hub(tiny_models: TinyModels) -> Iterator[Hub]:
    """Serve a model with much that nobody needs beside it, and others that cannot be had or packed."""
    files = read(tiny_models("bert", pooling="mean", normalize=True))
    files |= {"README.md": b"# Tiny", "2_Normalize/config.json": b"{}", ".gitattributes": b"*.bin filter=lfs"}
    for name in ("pytorch_model.bin", "onnx/model.onnx", "tf_model.h5", "flax_model.msgpack", "openvino/model.bin"):
        files[name] = b"not wanted" * 100
    plain = read(tiny_models("bert"))
    answering = json.loads(plain["config.json"]) | {"architectures": ["BertForQuestionAnswering"]}
    pickled = {name: content for name, content in plain.items() if name != "model.safetensors"}
    repos = {
        "org/tiny": Repo(files, COMMIT, ("main", "v1")),
        "org/gated": Repo(files, gated=True),
        "org/adapter": Repo({"adapter_config.json": b"{}", "adapter_model.safetensors": b"weights"}),
        "org/answering": Repo(plain | {"config.json": json.dumps(answering).encode()}),
        "org/large": Repo(plain | {"model.safetensors": random.Random(0).randbytes(24_000_000)}),  # several chunks
        "org/pickled": Repo(pickled | {"pytorch_model.bin": b"weights"}),
        "org/texts": Repo({"README.md": b"# No model"}),
    }
    with serve(repos) as server:
        yield server


def find(endpoint: str, home: Path, model: str, revision: str = "", **variables: str) -> dict[str, object]:
    """Find a model in a process of its own, with a hub cache of its own."""
    names = {
        "HF_ENDPOINT": endpoint,
        "HF_HOME": str(home),
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_ETAG_TIMEOUT": "2",
    }
    process = subprocess.run(
        [sys.executable, "-c", FIND, model, revision],
        env=environment(**(names | variables)),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    result: dict[str, object] = json.loads(process.stdout.splitlines()[-1])
    return result


def test_only_what_the_archive_needs_is_fetched_and_the_commit_recorded(hub: Hub, tmp_path: Path) -> None:
    hub.requests.clear()

    found = find(hub.url, tmp_path, "org/tiny", "v1")

    assert found == {"id": "org/tiny", "revision": COMMIT, "files": NEEDED, "notes": []}
    assert not [path for _, path in hub.requests if "onnx" in path or ".bin" in path or ".h5" in path]


def test_pickled_weights_are_fetched_where_there_are_no_safetensors(hub: Hub, tmp_path: Path) -> None:
    assert find(hub.url, tmp_path, "org/pickled")["files"] == [
        "config.json",
        "pytorch_model.bin",
        "tokenizer.json",
        "tokenizer_config.json",
    ]


def test_a_download_that_breaks_off_goes_on_where_it_stopped(hub: Hub, tmp_path: Path) -> None:
    hub.break_off_once.add("model.safetensors")
    hub.ranges.clear()

    find(hub.url, tmp_path, "org/large")

    assert re.fullmatch(r"bytes=\d{8,}-", " ".join(hub.ranges))  # once, and not from the start
    fetched = next(tmp_path.rglob("snapshots/*/model.safetensors"))
    assert fetched.read_bytes() == hub.repos["org/large"].files["model.safetensors"]


def test_the_cache_serves_when_the_hub_is_switched_off_or_down(hub: Hub, tmp_path: Path) -> None:
    find(hub.url, tmp_path, "org/tiny")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{unused.getsockname()[1]}"

    offline = find(hub.url, tmp_path, "org/tiny", HF_HUB_OFFLINE="1")
    down = find(nowhere, tmp_path, "org/tiny")

    expected = {"id": "org/tiny", "revision": COMMIT, "files": NEEDED}
    assert offline == expected | {"notes": ["HF_HUB_OFFLINE is set; taking commit c0ffee000000 from the cache"]}
    assert down == expected | {"notes": [f"{nowhere} cannot be reached; taking commit c0ffee000000 from the cache"]}


@pytest.mark.parametrize(
    ("model", "revision", "error"),
    [
        ("org/absent", "", "org/absent: neither a directory here nor a model on {hub} (a private one needs HF_TOKEN)"),
        ("org/gated", "", "org/gated: gated on {hub}; ask for access on its page there, then set HF_TOKEN"),
        ("org/tiny", "v9", "--revision: org/tiny has no revision 'v9' on {hub}"),
        ("org/texts", "", "org/texts: has neither config.json nor modules.json: not a transformers model"),
        (
            "org/adapter",
            "",
            "org/adapter: adapter_config.json: an adapter, not a whole model; merge it into its base model first",
        ),
    ],
)
def test_what_the_hub_does_not_give(hub: Hub, tmp_path: Path, model: str, revision: str, error: str) -> None:
    assert find(hub.url, tmp_path, model, revision) == {"error": error.replace("{hub}", hub.url)}


def test_a_token_opens_a_gated_model(hub: Hub, tmp_path: Path) -> None:
    assert find(hub.url, tmp_path, "org/gated", HF_TOKEN=TOKEN)["files"] == NEEDED


def test_a_model_that_cannot_be_packed_is_refused_before_its_weights_are_fetched(hub: Hub, tmp_path: Path) -> None:
    hub.requests.clear()

    error = str(find(hub.url, tmp_path, "org/answering")["error"])

    assert error.endswith("/config.json: BertForQuestionAnswering is trained for another task and gives no embeddings")
    assert not [path for _, path in hub.requests if path.endswith(".safetensors")]


def test_nothing_in_the_cache_and_no_hub(hub: Hub, tmp_path: Path) -> None:
    assert find(hub.url, tmp_path, "org/tiny", HF_HUB_OFFLINE="1") == {
        "error": f"HF_HUB_OFFLINE is set, and revision 'main' of org/tiny is not in the cache {tmp_path}/hub"
    }


def test_the_command_packs_a_hub_id_and_records_its_commit(hub: Hub, tmp_path: Path) -> None:
    store = tmp_path / "store"

    process = marvec(
        "pack", "org/tiny", "--model-store", str(store), HF_ENDPOINT=hub.url, HF_HOME=str(tmp_path / "home")
    )

    assert process.returncode == 0, process.stderr
    with zipfile.ZipFile(store / "tiny.mar") as archive:
        model = yaml.safe_load(archive.read("model-config.yaml"))["handler"]["model"]
    assert (model["id"], model["revision"]) == ("org/tiny", COMMIT)
    lines = [line.rstrip() for line in process.stdout.splitlines()]
    assert lines[0] == "name        tiny, version 1.0"
    assert f"model       org/tiny at {COMMIT}" in lines
    assert lines[-1] == f"next: marvec serve tiny --model-store {store}"
