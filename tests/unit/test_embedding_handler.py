"""The handler as TorchServe's Service drives it, without the server: statuses, describe, explain, profiler, metrics."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from ts.context import Context
from ts.service import Service

from embedding_handler import EmbeddingHandler
from marvec.errors import SettingsError
from tests.models.tiny import TinyModels
from tests.unit.handler_service import service_of, write_archive

ROOT = Path(__file__).resolve().parent.parent.parent
JSON = {"Content-Type": "application/json", "url_path": ""}


@pytest.fixture(scope="module")
def archive(tiny_models: TinyModels, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an unpacked archive of a tiny model."""
    return write_archive(tmp_path_factory.mktemp("archive"), tiny_models("bert"), {})


def ready_service(folder: Path, handler: EmbeddingHandler) -> Service:
    """A service that answers as behind a socket."""
    service = service_of(folder, handler, 4)
    service.set_cl_socket(None)
    return service


@pytest.fixture(scope="module")
def service(archive: Path) -> Service:
    return ready_service(archive, EmbeddingHandler())


def ask(service: Service, *requests: tuple[object, Mapping[str, str]]) -> list[tuple[int, str]]:
    """Send one batch of (body, headers) as the frontend does, and give each row's status and content type."""
    batch = []
    for i, (body, headers) in enumerate(requests):
        parameters = [] if body is None else [{"name": "body", "value": body, "contentType": "application/json"}]
        pairs = [{"name": name.encode(), "value": value.encode()} for name, value in headers.items()]
        batch.append({"requestId": f"r{i}".encode(), "parameters": parameters, "headers": pairs})
    service.predict(batch)
    context: Context = service.context
    return [(context.get_response_status(i)[0] or 200, context.get_response_content_type(i)) for i in range(len(batch))]


def answers(
    service: Service, monkeypatch: pytest.MonkeyPatch, *requests: tuple[object, Mapping[str, str]]
) -> list[tuple[int, object]]:
    """Each row's status and decoded body."""
    kept: list[bytes] = []
    entry = service._entry_point

    def keeping(data: object, context: Context) -> list[bytes]:
        result: list[bytes] = entry(data, context)
        kept[:] = result
        return result

    monkeypatch.setattr(service, "_entry_point", keeping)
    statuses = ask(service, *requests)
    assert len(kept) == len(requests)
    assert all(content_type == "application/json" for _, content_type in statuses)
    return [(status, json.loads(body)) for (status, _), body in zip(statuses, kept)]


def vector(answer: tuple[int, object]) -> list[float]:
    """The first vector of an answer."""
    assert isinstance(answer[1], dict)
    first: list[float] = answer[1]["predictions"][0]
    return first


def body(*texts: object) -> bytearray:
    return bytearray(json.dumps({"instances": texts}).encode())


def test_each_row_has_its_own_status(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    good, none, bad, form, many = answers(
        service,
        monkeypatch,
        (body("a"), JSON),
        (body(), JSON),
        (bytearray(b'"Blue shirt!'), JSON),
        (body("a"), {"Content-Type": "application/x-www-form-urlencoded"}),
        (body("a", "b", "", "c", "d"), JSON),
    )
    assert none == (400, {"error": "instances: expected at least one, got an empty list"})
    assert bad[0] == 400
    assert form[0] == 415
    assert good[0] == many[0] == 200
    assert isinstance(many[1], dict)
    assert len(many[1]["predictions"]) == 5
    assert vector(many) == pytest.approx(vector(good), abs=1e-6)


def test_what_torchserve_already_decoded_is_taken(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded, raw = answers(service, monkeypatch, ({"instances": ["a"]}, JSON), (body("a"), JSON))
    assert decoded[0] == raw[0] == 200
    assert vector(decoded) == pytest.approx(vector(raw), abs=1e-6)


def test_a_clients_describe_and_explain_headers_harm_no_neighbour(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = answers(
        service,
        monkeypatch,
        (body("a"), {**JSON, "describe": "True"}),
        (body("a"), {**JSON, "explain": "True"}),
        (body("a"), JSON),
    )
    assert first[0] == third[0] == 200
    assert vector(first) == pytest.approx(vector(third), abs=1e-6)
    assert second == (400, {"error": "explanations are not offered; send predictions to /predictions/NAME"})


def test_describe_is_a_call_without_a_body(archive: Path) -> None:
    handler = EmbeddingHandler()
    service = ready_service(archive, handler)
    described: list[object] = []
    entry = service._entry_point

    def keeping(data: object, context: Context) -> object:
        described.extend(entry(data, context))
        return described

    service._entry_point = keeping
    ask(service, (None, {"describe": "True"}))
    assert described == [handler.describe_handle()]


def test_rows_that_come_too_late_to_be_read_are_asked_to_come_again(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler = EmbeddingHandler()
    service = ready_service(archive, handler)
    assert handler.reading_timeout_s == 24
    monkeypatch.setattr(handler, "reading_timeout_s", -1)
    busy = (503, {"error": "the server is busy: try again in a moment"})
    assert answers(service, monkeypatch, (body("a"), JSON), (body(), JSON)) == [busy, busy]


def test_the_profiler_gives_the_same_answer(
    archive: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    handler = EmbeddingHandler()
    service = ready_service(archive, handler)
    plain = answers(service, monkeypatch, (body("a"), JSON))
    monkeypatch.setenv("ENABLE_TORCH_PROFILER", "true")
    monkeypatch.setattr(handler, "profiler_args", {"on_trace_ready": lambda profile: None})
    with caplog.at_level(logging.INFO):
        assert answers(service, monkeypatch, (body("a"), JSON)) == plain
    assert "inference" in caplog.text


def test_metrics_are_emitted_for_what_was_served_and_refused(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        ask(service, (body("a", "b"), JSON), (body(), JSON))
        ask(service, (body("a " * 500), JSON))
    lines = [record.getMessage() for record in caplog.records if record.getMessage().startswith("[METRICS]Marvec")]
    values = [line.split("|")[0] for line in lines]
    assert values == [
        "[METRICS]MarvecTexts.Count:2",
        "[METRICS]MarvecTokens.Count:6",
        "[METRICS]MarvecBatchFill.Percent:50.0",
        "[METRICS]MarvecRefusedRequests.Count:1",
        "[METRICS]MarvecTexts.Count:1",
        "[METRICS]MarvecTokens.Count:64",
        "[METRICS]MarvecBatchFill.Percent:25.0",
        "[METRICS]MarvecTruncatedTexts.Count:1",
    ]
    assert "Status:400,ModelName:tiny,Level:Model" in lines[3]


def test_settings_that_are_wrong_fail_the_load(archive: Path, tmp_path: Path) -> None:
    for name in ("model", "golden.json"):
        (tmp_path / name).symlink_to(archive / name)
    config = yaml.safe_load((archive / "model-config.yaml").read_text("utf-8"))
    config["handler"]["model"]["pooling"] = ["sum"]
    (tmp_path / "model-config.yaml").write_text(yaml.safe_dump(config), "utf-8")
    with pytest.raises(SettingsError, match=r"model\.pooling: expected one of"):
        ready_service(tmp_path, EmbeddingHandler())
