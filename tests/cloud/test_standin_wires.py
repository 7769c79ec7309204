"""The stand-in's wires: logins, hosts, trouble on demand and the log of calls.

These are tests of a stand-in: they show what the other tests of this folder rest on, not what Google does.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
import requests
from google.api_core.exceptions import (
    AlreadyExists,
    Conflict,
    Forbidden,
    GoogleAPICallError,
    NotFound,
    ServiceUnavailable,
    TooManyRequests,
    Unauthenticated,
)
from google.auth.exceptions import RefreshError
from google.cloud import aiplatform_v1
from google.cloud.aiplatform_v1.services.endpoint_service.transports import EndpointServiceGrpcTransport

from tests.cloud.client import ANSWERED, PARENT, Client, refused
from tests.cloud.conftest import CloudEnvironment, OpenStandIn
from tests.cloud.images import stub_images
from tests.cloud.standin.errors import Code
from tests.cloud.standin.stand_in import StandIn


@pytest.fixture
def client(stub_standin: StandIn) -> Iterator[Client]:
    with Client(stub_standin) as made:
        yield made


def test_without_a_bearer_token_nothing_is_answered(stub_standin: StandIn) -> None:
    answer = requests.get(f"{stub_standin.address}/v1/{PARENT}/models", timeout=30)
    assert answer.status_code == 401
    assert answer.json()["error"]["status"] == "UNAUTHENTICATED"


def test_a_token_that_is_refused(stub_standin: StandIn, client: Client) -> None:
    stub_standin.trouble.refuse_tokens = True
    # The client takes its token for outdated, and has no way to a new one.
    with pytest.raises(RefreshError):
        client.models.list_models(parent=PARENT)
    assert [call.outcome for call in stub_standin.calls.all()] == ["UNAUTHENTICATED"]
    answer = requests.post(f"{stub_standin.address}/token", data={}, timeout=30)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")


def test_another_project_and_an_unknown_region(client: Client) -> None:
    with pytest.raises(Forbidden):
        client.models.list_models(parent="projects/somebody-elses/locations/us-central1")
    with pytest.raises(NotFound):
        client.models.list_models(parent="projects/demo-project/locations/mars-north1")


def test_trouble_and_the_log_of_calls(client: Client, stub_standin: StandIn) -> None:
    trouble = stub_standin.trouble
    trouble.fail("CreateEndpoint", Code.UNAVAILABLE)
    trouble.fail("CreateEndpoint", Code.RESOURCE_EXHAUSTED)
    trouble.fail_operation("CreateEndpoint", Code.INTERNAL)
    trouble.cut("CreateEndpoint")
    with pytest.raises(ServiceUnavailable):
        client.create()
    with pytest.raises(TooManyRequests, match="The following quota metrics exceed quota limits: "):
        client.create()
    with pytest.raises(GoogleAPICallError, match="Internal error encountered"):
        client.create()
    with pytest.raises(requests.ConnectionError):
        client.create()
    assert trouble.left() == 0
    # Only the answer was lost.
    with pytest.raises(Conflict):
        client.create()
    assert [one.display_name for one in client.endpoints.list_endpoints(parent=PARENT)] == ["home"]
    made = stub_standin.calls.of("CreateEndpoint")
    assert [call.outcome for call in made] == ["UNAVAILABLE", "RESOURCE_EXHAUSTED", "OK", "CUT", "ALREADY_EXISTS"]
    assert made[0].body == {"parent": PARENT, "endpoint": {"displayName": "home"}, "endpointId": "home"}
    assert stub_standin.calls.changed() == ["CreateEndpoint"] * 5
    stub_standin.calls.clear()
    client.endpoint()
    assert stub_standin.calls.changes() == []


def test_the_proxy_leads_nowhere_else(stub_standin: StandIn) -> None:
    proxies = {"https": stub_standin.proxy.url}
    with pytest.raises(requests.exceptions.ProxyError):
        requests.get("https://example.com/", proxies=proxies, timeout=30)
    url = f"https://us-central1-aiplatform.googleapis.com/v1/{PARENT}/models"
    kept = {"proxies": proxies, "verify": str(stub_standin.authority), "timeout": 30}
    with requests.Session() as session:
        session.trust_env = False
        assert session.get(url, **kept).status_code == 401  # type: ignore[arg-type]
        wrong = session.get(
            url.replace("//us-central1", "//us-east1"),
            headers={"Authorization": "Bearer a-token"},
            **kept,  # type: ignore[arg-type]
        )
    assert wrong.json()["error"]["message"] == (
        "The location ID us-central1 doesn't match the endpoint us-east1-aiplatform.googleapis.com."
    )


def test_a_reset_forgets_everything(client: Client, stub_standin: StandIn) -> None:
    client.upload()
    client.create()
    client.deploy()
    stub_standin.reset()
    assert stub_standin.calls.all() == []
    assert list(client.models.list_models(parent=PARENT)) == []
    with pytest.raises(NotFound):
        client.predict(["x"])


def test_cloud_storage_behind_the_proxy(
    open_standin: OpenStandIn, storage: str, cloud_environment: CloudEnvironment, tmp_path: Path
) -> None:
    """Google's client for Cloud Storage takes the emulator for storage.googleapis.com."""
    script = (
        "import sys\n"
        "from google.cloud import storage\n"
        "bucket = storage.Client().bucket('models')\n"
        "bucket.blob('wire/a.bin').upload_from_string(b'x' * 9_000_000)\n"
        "names = [one.name for one in bucket.list_blobs(prefix='wire/')]\n"
        "print(names, len(bucket.blob('wire/a.bin').download_as_bytes()))\n"
    )
    with open_standin({}, storage=storage) as standin:
        done = subprocess.run(
            [sys.executable, "-c", script],
            env=cloud_environment(standin),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert standin.proxy.refused == []
    assert (done.stdout.strip(), done.stderr) == ("['wire/a.bin'] 9000000", "")


@pytest.mark.parametrize("local_dns", [False, True])
def test_raw_and_streamed_predictions_of_a_dedicated_endpoint(
    open_standin: OpenStandIn, cloud_environment: CloudEnvironment, local_dns: bool, tmp_path: Path
) -> None:
    script = (
        "import os\n"
        "from google.cloud import aiplatform\n"
        "aiplatform.init(project=os.environ['PROJECT'], location='us-central1')\n"
        "endpoint = aiplatform.Endpoint('home')\n"
        "headers = {'Content-Type': 'text/plain'}\n"
        "print(endpoint.dedicated_endpoint_dns, endpoint.raw_predict(body=b'xyz', headers=headers).text)\n"
        "print(*[line.decode() for line in endpoint.stream_raw_predict(body=b'xyz', headers=headers)])\n"
    )
    with open_standin(stub_images(), local_dns=local_dns) as standin, Client(standin) as client:
        client.upload()
        client.create(dedicated_endpoint_enabled=True)
        client.deploy()
        assert refused(client.predict, ["x"]).startswith("This endpoint is a dedicated endpoint and cannot be accessed")
        done = subprocess.run(
            [sys.executable, "-c", script],
            env=cloud_environment(standin),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    first, second = done.stdout.splitlines()
    dns, _, answer = first.partition(" ")
    own = r"127\.0\.0\.1:\d+" if local_dns else r"home\.us-central1-123456789012\.prediction\.vertexai\.goog"
    assert re.fullmatch(own, dns)
    assert answer == second == '{"bytes": 3, "type": "text/plain"}'


def test_the_grpc_wire(stub_standin: StandIn) -> None:
    trust = grpc.ssl_channel_credentials(stub_standin.authority.read_bytes())
    with grpc.secure_channel(f"127.0.0.1:{stub_standin.grpc_port}", trust) as channel:
        transport = EndpointServiceGrpcTransport(channel=channel)
        client = aiplatform_v1.EndpointServiceClient(transport=transport)
        with pytest.raises(Unauthenticated):
            client.list_endpoints(parent=PARENT)
        login = (("authorization", "Bearer a-token"),)
        stub_standin.trouble.cut("CreateEndpoint")
        request = {"parent": PARENT, "endpoint_id": "home", "endpoint": {"display_name": "home"}}
        with pytest.raises(ServiceUnavailable, match="Socket closed"):
            client.create_endpoint(request=request, metadata=login)
        with pytest.raises(AlreadyExists) as caught:
            client.create_endpoint(request=request, metadata=login)
        assert caught.value.message == f"Endpoint {ANSWERED}/endpoints/home already exists."
        assert [one.display_name for one in client.list_endpoints(parent=PARENT, metadata=login)] == ["home"]
    assert [(call.wire, call.outcome) for call in stub_standin.calls.of("CreateEndpoint")] == [
        ("grpc", "CUT"),
        ("grpc", "ALREADY_EXISTS"),
    ]
