"""The encoder of TorchScript files on small graphs: what it feeds them, and the forms of answer that it takes."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from marvec.encoder import load
from marvec.errors import ModelDirError, SettingsError
from marvec.settings import EmbeddingSettings, EngineSettings
from marvec.tokens import Tokens

SETTINGS = EngineSettings(encoder="torchscript")
TASK = EmbeddingSettings.task
PASS = [[Tokens.of([5, 6])], [Tokens.of([7])], [Tokens.of([1, 2, 3])]]  # three rows of one input each
TOKENS = [5.0, 6.0, 7.0, 1.0, 2.0, 3.0]


class Plain(nn.Module):
    """Gives each token's id and whether it counts: [inputs, length, 2]."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return torch.stack([input_ids, attention_mask], dim=2).float()


class Tuple(nn.Module):
    """As models traced with torchscript=True give it, with a pooled output behind."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
        return torch.stack([input_ids, attention_mask], dim=2).float(), input_ids[:, 0].float()


class List(nn.Module):
    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> list[Tensor]:
        return [torch.stack([input_ids, attention_mask], dim=2).float(), input_ids]


class Dict(nn.Module):
    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> dict[str, Tensor]:
        hidden = torch.stack([input_ids, attention_mask], dim=2).float()
        return {"pooler_output": input_ids[:, 0].float(), "last_hidden_state": hidden}


class UnnamedDict(nn.Module):
    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> dict[str, Tensor]:
        return {"hidden": torch.stack([input_ids, attention_mask], dim=2).float()}


class Half(nn.Module):
    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return torch.stack([input_ids, attention_mask], dim=2).half()


def write(folder: Path, module: nn.Module, pad_token_id: int | None = 0) -> Path:
    """Script a module into a model folder."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.jit.save(torch.jit.script(module), folder / "model.pt")
    (folder / "config.json").write_text(json.dumps({"pad_token_id": pad_token_id}))
    return folder


@pytest.mark.parametrize("kind", [Plain, Tuple, List, Dict, UnnamedDict, Half])
def test_the_tokens_of_all_inputs_come_back_without_padding(kind: type[nn.Module], tmp_path: Path) -> None:
    encoder = load(write(tmp_path, kind()), SETTINGS, "cpu", TASK)

    (hidden,) = encoder.encode([PASS])

    assert hidden.dtype == torch.float32
    assert hidden.tolist() == [[token, 1.0] for token in TOKENS]


@pytest.mark.parametrize(("pad_token_id", "filler"), [(9, 9), (0, 0), (None, 0)])
def test_short_inputs_are_filled_up_with_the_padding_token(
    pad_token_id: int | None, filler: int, tmp_path: Path
) -> None:
    class Sum(nn.Module):
        def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
            return (input_ids * (1 - attention_mask)).sum() + torch.zeros_like(input_ids)[:, :, None].float()

    encoder = load(write(tmp_path, Sum(), pad_token_id), SETTINGS, "cpu", TASK)

    (hidden,) = encoder.encode([PASS])

    assert hidden.tolist() == [[3.0 * filler]] * 6


def test_passes_come_back_in_their_order(tmp_path: Path) -> None:
    encoder = load(write(tmp_path, Plain()), SETTINGS, "cpu", TASK)
    passes = [[[Tokens.of([4])]], [[Tokens.of([8, 9])]]]

    assert [hidden[:, 0].tolist() for hidden in encoder.encode(passes)] == [[4.0], [8.0, 9.0]]


def test_a_pass_is_no_larger_than_the_settings_say(tmp_path: Path) -> None:
    write(tmp_path, Plain())

    assert load(tmp_path, SETTINGS, "cpu", TASK).policy.max_tokens == 1024
    assert load(tmp_path, EngineSettings("torchscript", max_batch_tokens=64), "cpu", TASK).policy.max_tokens == 64


def test_a_damaged_file_is_told_with_its_path(tmp_path: Path) -> None:
    write(tmp_path, Plain())
    (tmp_path / "model.pt").write_bytes(b"damaged")

    with pytest.raises(ModelDirError) as refusal:
        load(tmp_path, SETTINGS, "cpu", TASK)

    assert str(refusal.value).startswith(
        f"{tmp_path}/model.pt: torch cannot load it as TorchScript: "
        "PytorchStreamReader failed reading zip archive: not a ZIP archive"
    )


def test_it_is_served_in_float32_only() -> None:
    with pytest.raises(SettingsError) as refusal:
        EngineSettings("torchscript", "bfloat16")

    assert str(refusal.value) == "engine.dtype: a TorchScript file is served in float32 only, got 'bfloat16'"


def test_a_worker_does_without_transformers_and_without_warnings(tmp_path: Path) -> None:
    write(tmp_path, Plain())
    script = (
        "import sys, pathlib; from marvec.encoder import load; from marvec.settings import EngineSettings; "
        "from marvec.tokens import Tokens; "
        "(hidden,) = load(pathlib.Path(sys.argv[1]), EngineSettings('torchscript'), 'cpu', 'embedding')"
        ".encode([[[Tokens.of([5])]]]); "
        "print(hidden.tolist(), sorted({'transformers', 'openvino'} & set(sys.modules)))"
    )

    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning", "-c", script, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(Path(load.__code__.co_filename).parents[2])},
    )

    assert (done.stdout, done.stderr) == ("[[5.0, 1.0]] []\n", "")
