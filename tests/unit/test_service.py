"""A tiny real model at work: one call for a batch, one result each, faults kept apart."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer
from torch import Tensor

import marvec
from archiver import model_dir
from marvec import golden
from marvec.embedder import Embedder
from marvec.encoder import Encoder, Rows, precision
from marvec.errors import BusyError, InternalError, ModelDirError, SelfTestError, SettingsError
from marvec.golden import Golden
from marvec.service import Job, Service
from marvec.settings import EmbeddingModel, EmbeddingSettings, EngineSettings, LimitSettings
from marvec.tokens import TextTokenizer
from tests.models.tiny import TinyModels


class FaultyEncoder:
    """The real encoder, but for one token: there it fails, or gives a NaN, which may spread to its whole pass."""

    def __init__(self, real: Encoder, token: int, fault: str) -> None:
        self.name, self.device, self.dtype = real.name, real.device, real.dtype
        self.threads, self.policy = real.threads, real.policy
        self._real, self._token, self._fault = real, token, fault

    def encode(self, passes: Sequence[Rows]) -> Iterator[Tensor]:
        for rows, hidden in zip(passes, self._real.encode(passes)):
            flat = torch.tensor([token for row in rows for item in row for token in item.ids])
            if self._fault == "raise" and (flat == self._token).any():
                raise RuntimeError("no memory for s3cret")
            bad = flat == self._token
            spoilt = bad | bad.any() if self._fault == "spread" else bad
            yield hidden.masked_fill(spoilt[:, None], float("nan"))


def tiny_settings(folder: Path) -> EmbeddingSettings:
    found = model_dir.read(folder)
    return EmbeddingSettings(EmbeddingModel("tiny", None, found.max_length, found.hidden_size, ("mean",), True))


@pytest.fixture(scope="module")
def folder(tiny_models: TinyModels) -> Path:
    return tiny_models("bert")


@pytest.fixture(scope="module")
def embedder(folder: Path) -> Embedder:
    return Embedder.load(folder, tiny_settings(folder))


def job(service: Service, *texts: str, **parameters: object) -> Job:
    return service.read(json.dumps({"instances": texts, "parameters": parameters}).encode(), {}, "")


def serve(embedder: Embedder, capacity_tokens: int = 10_000) -> Service:
    return Service(embedder, {"golden_cosine": 1.0}, capacity_tokens)


def vectors(result: object) -> Tensor:
    assert isinstance(result, Tensor), result
    return result


def test_requests_of_one_batch_get_their_own_vectors(embedder: Embedder) -> None:
    service = serve(embedder)
    jobs = [
        job(service, "a b"),
        job(service, "c", "d e f", "", normalize=False),
        job(service, "a", outputDimensionality=4),
    ]
    together = [vectors(result) for result in service.compute(jobs)]
    assert [list(result.shape) for result in together] == [[1, 32], [3, 32], [1, 4]]
    for one, result in zip(jobs, together):
        torch.testing.assert_close(vectors(service.compute([one])[0]), result, rtol=0, atol=1e-5)
    assert together[2].norm().item() == pytest.approx(1, abs=1e-6)
    assert json.loads(service.write(jobs[2], together[2]))["predictions"][0] == pytest.approx(together[2][0].tolist())


def test_each_request_is_written_in_the_shape_that_it_asked_for(embedder: Embedder) -> None:
    service = serve(embedder)
    asked: list[tuple[object, str]] = [
        ({"instances": [{"content": "a"}, "a"]}, ""),
        ({"input": ["a"], "model": "m"}, "v1/embeddings"),
    ]
    jobs = [service.read(body, {}, path) for body, path in asked]
    google, openai = (
        json.loads(service.write(one, vectors(result))) for one, result in zip(jobs, service.compute(jobs))
    )
    row = pytest.approx(embedder.answer_texts(["a"])[0].tolist(), abs=1e-6)
    statistics = {"token_count": 3, "truncated": False}
    assert google == {"predictions": [{"embeddings": {"values": row, "statistics": statistics}}, row]}
    assert openai == {
        "object": "list",
        "data": [{"object": "embedding", "index": 0, "embedding": row}],
        "model": "m",
        "usage": {"prompt_tokens": 3, "total_tokens": 3},
    }


def test_no_jobs_no_results(embedder: Embedder) -> None:
    assert serve(embedder).compute([]) == []


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("raise", "the encoder failed: no memory for s3cret"),
        ("nan", "inputs [1] gave numbers that are not finite"),
        ("spread", "inputs [0, 1] gave numbers that are not finite"),
    ],
)
def test_a_poison_request_fails_alone(
    embedder: Embedder, fault: str, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    token = embedder.tokenizer.encode(["zebra"])[0].ids[1]
    sick = replace(embedder, encoder=FaultyEncoder(embedder.encoder, token, fault))
    service = serve(sick)
    good, bad, last = service.compute([job(service, "a"), job(service, "a", "zebra"), job(service, "b")])
    assert vectors(good).shape == (1, 32)
    assert vectors(last).shape == (1, 32)
    assert isinstance(bad, InternalError)
    assert str(bad) == message
    assert "s3cret" not in bad.public_message
    assert "tiny" in caplog.text
    assert "zebra" not in caplog.text


def test_what_the_timeout_leaves_no_time_for_is_asked_to_come_again(embedder: Embedder) -> None:
    service = serve(embedder, capacity_tokens=100)
    long = " ".join(["a"] * 200)
    first, second, third = service.compute([job(service, long), job(service, long), job(service, "a")])
    assert vectors(first).shape == (1, 32)
    assert isinstance(second, BusyError)
    assert (second.status, second.public_message) == (503, "the server is busy: try again in a moment")
    assert vectors(third).shape == (1, 32)


def test_answers_that_torchserve_would_read_for_minutes_are_asked_to_come_again(
    embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marvec.service, "_BATCH_ANSWER_BYTES", 24_000)  # a thousandth
    service = serve(embedder)
    jobs = [job(service, *[""] * 30), job(service, *[""] * 30), job(service, "a")]
    first, second, third = service.compute(jobs)
    assert vectors(first).shape == (30, 32)
    assert isinstance(second, BusyError)
    assert vectors(third).shape == (1, 32)


def test_the_limit_in_force_is_told(embedder: Embedder) -> None:
    described = serve(embedder, capacity_tokens=1000).describe()
    assert json.loads(json.dumps(described)) == described
    assert described["limits"] == {
        "max_instances": 2048,
        "max_request_tokens": 1000,
        "max_response_bytes": 64_000_000,
        "openai_token_ids": False,
    }
    assert described["self_test"] == {"golden_cosine": 1.0}


def test_the_engine_is_told(embedder: Embedder) -> None:
    described = serve(embedder).describe()
    assert described["engine"] == {
        "encoder": "transformers",
        "device": "cpu",
        "dtype": "float32",
        "max_batch_tokens": 1024,
        "lanes": 1,
        "threads": torch.get_num_threads(),
    }
    assert described["drift"] is None
    assert described["versions"] == {
        "marvec": marvec.__version__,
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in ("torch", "openvino", "transformers", "tokenizers")},
    }


def test_a_single_full_text_is_never_too_much(embedder: Embedder) -> None:
    service = serve(embedder, capacity_tokens=1)
    assert vectors(service.compute([job(service, " ".join(["a"] * 200))])[0]).shape == (1, 32)


def test_the_archive_is_proved_when_it_is_loaded(folder: Path, embedder: Embedder, tmp_path: Path) -> None:
    (tmp_path / "model").symlink_to(folder)
    golden.record(embedder).save(tmp_path / "golden.json")
    service = Service.load(tmp_path, tiny_settings(folder), "cpu", response_timeout_s=120)
    assert service.describe()["self_test"] == {"golden_cosine": 1.0}


def test_other_vectors_than_at_pack_time_are_refused(embedder: Embedder) -> None:
    recorded = golden.record(embedder)
    other = replace(recorded, answers=[[-number for number in row] for row in recorded.answers])
    with pytest.raises(SelfTestError, match=r"golden vectors is -1\.000000, allowed is 0\.9999"):
        other.check(embedder)
    counts = replace(recorded, token_counts=[count + 1 for count in recorded.token_counts])
    with pytest.raises(SelfTestError, match="the tokenizer gives"):
        counts.check(embedder)


def test_vectors_that_are_not_finite_are_refused(embedder: Embedder) -> None:
    token = embedder.tokenizer.encode([""])[0].ids[0]
    with pytest.raises(SelfTestError, match="not finite"):
        golden.record(replace(embedder, encoder=FaultyEncoder(embedder.encoder, token, "nan")))


def test_a_missing_golden_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SelfTestError, match=r"golden\.json: cannot be read; pack the model again"):
        Golden.load(tmp_path / "golden.json")


def test_a_tokenizer_that_makes_nothing_of_an_empty_text_has_no_golden_vector_of_it(embedder: Embedder) -> None:
    file = json.loads(embedder.tokenizer._tokenizer.to_str())
    bare = TextTokenizer(Tokenizer.from_str(json.dumps({**file, "post_processor": None})), 64)
    recorded = golden.record(replace(embedder, tokenizer=bare))
    assert "" not in recorded.texts
    assert len(recorded.texts) == len(recorded.answers) == len(golden.record(embedder).texts) - 1


def test_a_wrong_dimension_is_refused(folder: Path) -> None:
    settings = tiny_settings(folder)
    with pytest.raises(ModelDirError, match=r"gives 32 numbers, model\.dimension says 16"):
        Embedder.load(folder, replace(settings, model=replace(settings.model, dimension=16)))


def test_float16_needs_cuda(folder: Path) -> None:
    settings = replace(tiny_settings(folder), engine=EngineSettings(dtype="float16"))
    with pytest.raises(SettingsError, match="float16 needs a CUDA device"):
        Embedder.load(folder, settings)


def test_bfloat16_is_near_float32(
    folder: Path, embedder: Embedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpuinfo").write_text("flags : fpu amx_bf16\n")  # torch emulates it where it is not native
    monkeypatch.setattr(precision, "_CPUINFO", tmp_path / "cpuinfo")
    settings = replace(tiny_settings(folder), engine=EngineSettings(dtype="bfloat16"))
    half = Embedder.load(folder, settings)
    golden.record(embedder).check(half)
    assert half.answer_texts(["a"]).dtype == torch.float32


def test_limits_are_kept_from_the_settings(folder: Path, embedder: Embedder) -> None:
    limited = replace(embedder, settings=replace(embedder.settings, limits=LimitSettings(max_request_tokens=50)))
    described = serve(limited).describe()
    assert json.loads(json.dumps(described))["limits"]["max_request_tokens"] == 50
