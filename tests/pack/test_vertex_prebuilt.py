"""`--vertex-prebuilt`: what model.mar holds, that Python 3.9 can compute with it, and what is refused."""

from __future__ import annotations

import json
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from archiver import openvino_export, staging, vertex_prebuilt
from archiver.errors import PackError
from archiver.openvino_export import ExportError
from archiver.options import PackOptions
from tests.install.other_pythons import ROOT, environment_with, find_python, run
from tests.models.tiny import TinyModels
from tests.pack.conftest import PackedTwice, Packer

TEXT = "日本の薔薇農家 grows roses one can eat"
PACKAGES = ("openvino", "orjson", "safetensors", "tokenizers")
OLD = b"the archive of last week"

# Hidden states of one text, by a packed graph and tokenizer alone: under a Python of another version and its bundle.
COMPUTE = """
import sys
folder, text, target, bundled = sys.argv[1:]
if bundled == "yes":
    sys.path.insert(0, f"{folder}/packages")
sys.modules["openvino_telemetry"] = None
import numpy as np, openvino, orjson, safetensors, tokenizers
if bundled == "yes":
    for package in (openvino, orjson, safetensors, tokenizers):
        assert package.__file__.startswith(f"{folder}/packages/"), package.__file__
ids = tokenizers.Tokenizer.from_file(f"{folder}/model/tokenizer.json").encode(text).ids
tokens = np.array([ids], np.int64)
values = {
    "input_ids": tokens, "position_ids": np.arange(len(ids))[None], "segments": np.ones_like(tokens),
    "attention_mask": np.ones_like(tokens),
}
core = openvino.Core()
assert core.available_devices == ["CPU"], core.available_devices
model = core.compile_model(f"{folder}/model/openvino_model.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
given = {port.get_any_name(): values[port.get_any_name()] for port in model.inputs}
np.save(target, model(given)[0])
print("%d.%d" % sys.version_info[:2], openvino.__version__.split("-")[0], orjson.dumps(ids).decode())
"""


def config_of(folder: Path) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load((folder / "model-config.yaml").read_text(encoding="utf-8"))
    return config


def manifest_of(folder: Path) -> dict[str, str]:
    manifest: dict[str, str] = json.loads((folder / "MAR-INF" / "MANIFEST.json").read_text())["model"]
    return manifest


def test_pack_tells_what_it_made_and_how_it_gets_to_vertex(twice: PackedTwice) -> None:
    folder = twice.store / "minilm.vertex"

    assert twice.done.stdout.splitlines()[-6:] == [
        f"next: marvec serve minilm --model-store {twice.store}",
        "",
        "on Vertex AI, in Google's prebuilt container (until 2027-01-14, when Google removes it):",
        f"  gcloud storage cp -r {folder} gs://BUCKET/",
        '  Model.upload(display_name="minilm", artifact_uri="gs://BUCKET/minilm.vertex",',
        '      serving_container_image_uri="us-docker.pkg.dev/vertex-ai/prediction/pytorch-cpu.2-4:latest")',
    ]
    size = (folder / "model.mar").stat().st_size / 1e6
    assert f"for Vertex AI  {folder / 'model.mar'}, {size:,.1f} MB" in re.sub(r"\n +", "", twice.done.stdout)
    assert "fetching for Python 3.9: openvino, orjson, safetensors, tokenizers" in twice.done.stderr.splitlines()
    assert twice.done.stderr.splitlines()[-1] == "loading model.mar as a worker of a prebuilt container does"
    assert sorted(path.name for path in twice.store.rglob("*")) == ["minilm.mar", "minilm.vertex", "model.mar"]


def test_model_mar_is_the_usual_archive_with_another_handler_its_packages_and_lone_requests(twice: PackedTwice) -> None:
    usual, vertex = manifest_of(twice.usual), manifest_of(twice.vertex)
    assert vertex == {**usual, "modelName": "model", "handler": "prebuilt_handler.py"}
    assert usual["handler"] == "embedding_handler.py"

    frontend = {"batchSize": 1, "minWorkers": 1, "maxWorkers": 1}
    assert config_of(twice.vertex) == {**config_of(twice.usual), **frontend}

    names = [
        {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}
        for folder in (twice.usual, twice.vertex)
    ]
    more = {name for name in names[1] - names[0] if not name.startswith("packages/")}
    assert more == {"prebuilt_handler.py"}
    assert names[0] <= names[1]


def test_the_bundle_is_for_python_39_and_holds_what_cpus_need(twice: PackedTwice) -> None:
    packages = twice.vertex / "packages"
    versions = {path.name.removesuffix(".dist-info") for path in packages.glob("*.dist-info")}
    assert versions == {name.replace("==", "-") for name in locked("prebuilt-py39.txt")}
    assert {path.name for path in packages.iterdir() if path.suffix != ".dist-info"} == set(PACKAGES)

    extensions = {str(file.relative_to(packages)) for file in packages.rglob("*.so") if "libs" not in file.parts}
    assert {"openvino/_pyopenvino.cpython-39-x86_64-linux-gnu.so", "tokenizers/tokenizers.abi3.so"} <= extensions
    assert [name for name in extensions if ".cpython-" in name and ".cpython-39-" not in name] == []

    libraries = {re.sub(r"\.so.*", "", file.name) for file in (packages / "openvino" / "libs").glob("libopenvino*")}
    assert libraries == {"libopenvino", "libopenvino_c", "libopenvino_intel_cpu_plugin", "libopenvino_ir_frontend"}
    assert not list(packages.rglob("*.pyc"))


def locked(name: str) -> list[str]:
    """Return the pins of a lock file, such as "orjson==3.11.5"."""
    return re.findall(r"^\S+==\S+", (ROOT / "docker" / "requirements" / name).read_text(), flags=re.MULTILINE)


def test_what_is_bundled_is_what_images_with_python_39_get() -> None:
    bundled = locked("prebuilt-py39.txt")

    assert tuple(pin.split("==")[0] for pin in bundled) == vertex_prebuilt.PACKAGES == PACKAGES
    assert set(bundled) <= set(locked("server-py39.txt"))


def test_python_39_computes_with_the_bundle_what_this_one_computes(twice: PackedTwice, tmp_path: Path) -> None:
    """The same graph and tokenizer, an older OpenVINO: hidden states agree, and nothing but numpy is needed."""
    older = find_python("3.9")
    if older is None:
        pytest.skip("no working Python 3.9 on this machine")
    there, here = tmp_path / "there.npy", tmp_path / "here.npy"
    python = environment_with(older, ["numpy==2.0.2"])
    said = [
        run([python, "-c", COMPUTE, twice.vertex, TEXT, there, "yes"], cwd=tmp_path).split(maxsplit=2),
        run([sys.executable, "-c", COMPUTE, twice.vertex, TEXT, here, "no"], cwd=tmp_path).split(maxsplit=2),
    ]

    assert said[0][:2] == ["3.9", "2025.3.0"]
    assert said[0][2] == said[1][2]
    assert np.load(there).shape == (1, len(json.loads(said[0][2])), 384)
    assert np.abs(np.load(there) - np.load(here)).max() < 1e-4


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ({"target": "gpu"}, "--target gpu (float32)"),
        ({"dtype": "float16"}, "--target gpu (float16)"),
        ({"torchscript": Path(__file__)}, "--torchscript"),
    ],
)
def test_what_cannot_run_there_is_refused_before_any_work(values: dict[str, Any], what: str) -> None:
    with pytest.raises(PackError) as refusal:
        PackOptions("m", vertex_prebuilt=True, **values)

    assert str(refusal.value) == (
        f"--vertex-prebuilt: goes with --target cpu or any, not with {what}: in Google's prebuilt containers OpenVINO "
        "computes, on their CPU; for the rest build an image of your own (marvec image build)"
    )


@pytest.fixture
def no_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bundle empty packages: the proof uses this Python's own ones anyway."""

    def fetch(folder: Path) -> None:
        for name in PACKAGES:
            (folder / name).mkdir(parents=True)
            (folder / name / "__init__.py").touch()

    monkeypatch.setattr(vertex_prebuilt, "fetch", fetch)


@pytest.mark.usefixtures("no_fetch")
def test_a_model_that_does_not_convert_is_refused_and_old_archives_stay(
    tiny_models: TinyModels, packer: Packer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ExportError("no such operator")

    monkeypatch.setattr(openvino_export, "export", fail)
    old = packer.store / "tiny.vertex" / "model.mar"
    old.parent.mkdir(parents=True)
    old.write_bytes(OLD)

    with pytest.raises(PackError) as refusal:
        packer(tiny_models("bert"), PackOptions("-", vertex_prebuilt=True))

    assert str(refusal.value) == (
        "--vertex-prebuilt: this model does not convert to OpenVINO, and Google's prebuilt containers have no "
        "transformers for it; pack without this option and serve it from an image of your own (marvec image build)"
    )
    assert sorted(path.name for path in packer.store.rglob("*")) == ["model.mar", "tiny.vertex"]
    assert old.read_bytes() == OLD


@pytest.mark.usefixtures("no_fetch")
def test_weights_for_gpus_stay_out_and_workers_are_as_asked(tiny_models: TinyModels, packer: Packer) -> None:
    model = tiny_models("bert", pooling="mean", dense=16)
    packed = packer(model, PackOptions("-", target="any", workers=2, version="3", vertex_prebuilt=True), "model").packed

    assert packed.vertex == packer.store / "model.vertex" / "model.mar"
    with zipfile.ZipFile(packed.vertex) as archive:
        weights = {name for name in archive.namelist() if name.startswith("model/") and "json" not in name}
        config = yaml.safe_load(archive.read("model-config.yaml"))
        manifest = json.loads(archive.read("MAR-INF/MANIFEST.json"))["model"]
    assert weights == {"model/openvino_model.bin", "model/openvino_model.xml", "model/2_Dense/model.safetensors"}
    assert (config["batchSize"], config["minWorkers"], config["maxWorkers"]) == (1, 2, 2)
    assert manifest["modelVersion"] == "3"
    with zipfile.ZipFile(packed.file) as archive:
        assert "model/model.safetensors" in archive.namelist()


@pytest.mark.usefixtures("no_fetch")
def test_a_handler_that_needs_what_is_not_there_is_found_out(
    tiny_models: TinyModels, packer: Packer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoil(folder: Path, name: str) -> None:
        staging.copy_handler(folder, name)
        with (folder / name).open("a") as handler:
            handler.write("import transformers\n")

    monkeypatch.setattr("archiver.vertex_prebuilt.copy_handler", spoil)
    with pytest.raises(PackError) as refusal:
        packer(tiny_models("bert"), PackOptions("-", vertex_prebuilt=True))

    line = len((ROOT / "handler" / "prebuilt_handler.py").read_text().splitlines()) + 1
    assert str(refusal.value) == (
        "model.mar: does not load as TorchServe would load it: ModuleNotFoundError: No module named 'transformers' in "
        f"the archive (prebuilt_handler.py, line {line})"
    )
    assert list(packer.store.iterdir()) == []


def test_a_package_of_another_digest_is_refused(tmp_path: Path) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text(f"orjson==3.11.5 --hash=sha256:{'0' * 64}\n")

    with pytest.raises(PackError) as refusal:
        vertex_prebuilt.fetch(tmp_path / "packages", "3.9", lock)

    assert str(refusal.value).startswith(
        "--vertex-prebuilt: pip cannot fetch openvino, orjson, safetensors, tokenizers for Python 3.9: ERROR: THESE "
        "PACKAGES DO NOT MATCH THE HASHES"
    )


def test_without_the_lock_file_a_checkout_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(PackError) as refusal:
        vertex_prebuilt.fetch(tmp_path / "packages", "3.9", tmp_path / "lock.txt")

    assert str(refusal.value) == (
        f"--vertex-prebuilt: {tmp_path / 'lock.txt'} is missing: pack from a checkout of Marvec's repository"
    )
