"""An archive that a worker could not serve is found out, and the user reads the first real cause."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
import torch

from archiver import archive, proof
from archiver.errors import PackError
from archiver.probe import Probe
from archiver.proof import prove
from marvec.encoder import precision
from marvec.settings import EmbeddingModel, EmbeddingSettings, EngineSettings

SETTINGS = EmbeddingSettings(
    EmbeddingModel("stub", None, max_length=8, dimension=3, pooling=("mean",), normalize=False)
)
PROBE = Probe("rose", [1.0, 2.0, 2.0])

HANDLER = """
from marvec import answer

class EmbeddingHandler:
    def initialize(self, context):
        answer.begin(context)

    def handle(self, data, context):
        return answer.give(data, context)
"""

SOUND = """
import json

def begin(context):
    with open("model-config.yaml") as file:  # the working folder is the archive's
        assert file.read() == "handler:\\n  engine:\\n    dtype: float32\\n"
    assert context.system_properties["gpu_id"] is None

def give(data, context):
    assert json.loads(bytes(data[0]["body"])) == {"instances": ["rose"]}
    return [json.dumps({"predictions": [[1.0, 2.0, 2.0]]})]
"""

FAULTS = {
    "import": (
        "import json\nimport a_package_that_is_not_here\n",
        "stub.mar: does not load as TorchServe would load it: "
        "ModuleNotFoundError: No module named 'a_package_that_is_not_here' (marvec/answer.py, line 2)",
    ),
    "initialize": (
        "def begin(context):\n    raise ValueError('no such weights')\n",
        "stub.mar: does not load as TorchServe would load it: ValueError: no such weights (marvec/answer.py, line 2)",
    ),
    "death": (
        "import os\ndef begin(context):\n    print('going', flush=True)\n    os._exit(3)\n",
        "stub: the loading process ended with 3: going",
    ),
    "refusal": (
        "def begin(context): pass\n"
        "def give(data, context):\n    context.set_response_status(400, 'Bad Request', 0)\n    return ['no']\n",
        "stub.mar: answers a text with 400: no",
    ),
    "another vector": (
        SOUND.replace("[1.0, 2.0, 2.0]", "[1.0, 2.0, -2.0]"),
        "stub.mar: a worker gives another answer than the packed model: smallest cosine to the golden vectors is "
        "0.111111, allowed is 0.9999 and above",
    ),
    "not a number": (
        SOUND.replace("[1.0, 2.0, 2.0]", "[1.0, 2.0, float('nan')]"),
        "stub.mar: a worker gives another answer than the packed model: a golden text's answer has a number that is "
        "not finite",
    ),
}


def build(folder: Path, answer: str, dtype: str = "float32") -> Path:
    """Archive a stub of the handler and of the library."""
    staged = folder / "staged"
    (staged / "marvec").mkdir(parents=True)
    (staged / "embedding_handler.py").write_text(HANDLER)
    (staged / "marvec" / "__init__.py").write_text("")
    (staged / "marvec" / "answer.py").write_text(answer)
    (staged / "model-config.yaml").write_text(f"handler: {{engine: {{dtype: {dtype}}}}}")
    return archive.build(staged, folder, "stub", "1.0", "embedding_handler.py")


def test_a_sound_archive_is_loaded_with_the_workers_folder_and_search_path(tmp_path: Path) -> None:
    unpacked = tmp_path / "unpacked"
    unpacked.mkdir()

    prove(build(tmp_path, SOUND), unpacked, "stub", SETTINGS, PROBE)

    assert not list(unpacked.rglob("__pycache__"))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_told_by_its_first_real_cause(fault: str, tmp_path: Path) -> None:
    answer, expected = FAULTS[fault]
    unpacked = tmp_path / "unpacked"
    unpacked.mkdir()

    with pytest.raises(PackError) as refusal:
        prove(build(tmp_path, answer), unpacked, "stub", SETTINGS, PROBE)

    assert str(refusal.value) == expected


def test_a_damaged_archive_is_found_out_while_it_is_unpacked(tmp_path: Path) -> None:
    file = build(tmp_path, SOUND)
    content = bytearray(file.read_bytes())
    place = content.index(b"import json")
    content[place : place + 6] = b"damage"
    file.write_bytes(content)
    unpacked = tmp_path / "unpacked"
    unpacked.mkdir()

    with pytest.raises(PackError) as refusal:
        prove(file, unpacked, "stub", SETTINGS, PROBE)

    assert str(refusal.value) == "stub.mar: damaged as it was written: Bad CRC-32 for file 'marvec/answer.py'"
    assert isinstance(refusal.value.__cause__, zipfile.BadZipFile)


@pytest.mark.skipif(torch.cuda.is_available(), reason="with a GPU half precision is proved as it is")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_what_this_machine_would_have_to_emulate_is_proved_in_float32(
    dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpuinfo").write_text("flags : fpu avx2\n")
    monkeypatch.setattr(precision, "_CPUINFO", tmp_path / "cpuinfo")
    unpacked = tmp_path / "unpacked"
    unpacked.mkdir()
    settings = EmbeddingSettings(SETTINGS.model, EngineSettings(dtype=dtype))

    prove(build(tmp_path, SOUND, dtype), unpacked, "stub", settings, PROBE)  # SOUND reads what it is loaded in

    assert proof.dtype_here(dtype) == "float32"


@pytest.mark.skipif(torch.cuda.is_available(), reason="says what is so without a GPU")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "auto"])
def test_what_a_cpu_computes_in_is_proved_as_it_is(dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cpuinfo").write_text("flags : fpu amx_bf16\n")
    monkeypatch.setattr(precision, "_CPUINFO", tmp_path / "cpuinfo")

    assert proof.dtype_here(dtype) == dtype
