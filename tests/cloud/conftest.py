"""Fixtures of the tests against a stand-in of Vertex AI (tests/cloud/standin says what such a test shows).

A test of commands is a subprocess with no setting but its environment:

    def test_upload(standin: StandIn, cloud_environment: CloudEnvironment, tmp_path: Path) -> None:
        done = subprocess.run(command, env=cloud_environment(standin), ...)
        assert standin.calls.changed() == ["UploadModel"]                       # only reads: == []
        assert standin.calls.of("UploadModel")[0].body["modelId"] == "minilm"   # the API's JSON, in camelCase
        standin.trouble.fail("CreateEndpoint", Code.UNAVAILABLE)                # the next one; times=3 for three
        standin.trouble.fail("DeployModel", Code.RESOURCE_EXHAUSTED)            # with Google's words on quotas
        standin.trouble.fail_operation("DeployModel", Code.INTERNAL)            # begins, then fails
        standin.trouble.cut("UploadModel")                                      # done, and its answer is lost
        standin.trouble.refuse_tokens = True                                    # no login is accepted

`standin` is new for each test, knows all images of tests/cloud/images.py (those of ours take seconds to be up, the
stubs none), and has the buckets `models`, `inputs` and `outputs` at the address `storage`; `stub_standin` is the same
with the stubs alone, and no Cloud Storage. Where several tests share what is deployed, make a fixture of a wider scope
with

    @pytest.fixture(scope="module")
    def deployed(open_standin: OpenStandIn, images: Mapping[str, Image]) -> Iterator[StandIn]:
        with open_standin(images) as standin:
            ...

and leave it as it was. Every container, server and file ends with its stand-in, also when the tests crash.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from tests.cloud.standin.images import Image
    from tests.cloud.standin.stand_in import StandIn
    from tests.models.tiny import TinyModels

BUCKETS = ("models", "inputs", "outputs")


class OpenStandIn(Protocol):
    """What the fixture `open_standin` gives."""

    def __call__(self, images: Mapping[str, Image], *, storage: str | None = None, local_dns: bool = False) -> StandIn:
        """Start a stand-in; use it as a context manager."""


class CloudEnvironment(Protocol):
    """What the fixture `cloud_environment` gives."""

    def __call__(self, standin: StandIn, transport: str = "grpc") -> dict[str, str]:
        """Return the variables for a subprocess; TRANSPORT tells a script which one it is to ask the SDK for."""


class GcloudEnvironment(Protocol):
    """What the fixture `gcloud_environment` gives."""

    def __call__(self, standin: StandIn) -> dict[str, str]:
        """Return the variables for gcloud as a subprocess."""


@pytest.fixture(scope="session")
def tiny_store(tmp_path_factory: pytest.TempPathFactory, tiny_models: TinyModels) -> Path:
    """Return a model store with tiny.mar: 32 numbers a text."""
    from tests.contract.archives import PROMPTS, build

    store = tmp_path_factory.mktemp("cloud") / "store"
    build(store, "tiny", tiny_models("bert", pooling="mean", normalize=True, prompts=PROMPTS))
    return store


@pytest.fixture(scope="session")
def images(minilm_store: Path, tiny_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Image]:
    """Return everything that can be pulled, by URI."""
    from tests.cloud.images import all_images

    return all_images(minilm_store, tiny_store, tmp_path_factory.mktemp("empty-store"))


@pytest.fixture(scope="session")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve Cloud Storage with the buckets of BUCKETS; returns the address."""
    from tests.cloud.standin.storage import Storage
    from tests.server.storage import cloud_storage

    with cloud_storage(tmp_path_factory.mktemp("buckets")) as address:
        made = Storage(address)
        for bucket in BUCKETS:
            made.make_bucket(bucket)
        made.close()
        yield address


@pytest.fixture(scope="session")
def open_standin() -> OpenStandIn:
    """Return the maker of stand-ins."""
    from tests.cloud.standin.core import Options
    from tests.cloud.standin.stand_in import StandIn

    def start(images: Mapping[str, Image], *, storage: str | None = None, local_dns: bool = False) -> StandIn:
        return StandIn(Options(images, storage=storage, local_dns=local_dns))

    return start


@pytest.fixture
def standin(open_standin: OpenStandIn, images: Mapping[str, Image], storage: str) -> Iterator[StandIn]:
    """Run a new stand-in with all images and with Cloud Storage."""
    with open_standin(images, storage=storage) as running:
        yield running


@pytest.fixture
def stub_standin(open_standin: OpenStandIn) -> Iterator[StandIn]:
    """Run a new stand-in with the stubs alone."""
    from tests.cloud.images import stub_images

    with open_standin(stub_images()) as running:
        yield running


@pytest.fixture(scope="session")
def cloud_environment() -> CloudEnvironment:
    """Return the maker of variables for the SDK, and for what is built on it."""
    from tests.cloud.standin.environment import sdk_environment

    def environment(standin: StandIn, transport: str = "grpc") -> dict[str, str]:
        return {**sdk_environment(standin), "TRANSPORT": transport}

    return environment


@pytest.fixture(scope="session")
def gcloud_environment(tmp_path_factory: pytest.TempPathFactory) -> GcloudEnvironment:
    """Return the maker of variables for gcloud."""
    from tests.cloud.standin.environment import gcloud_environment

    def environment(standin: StandIn) -> dict[str, str]:
        return gcloud_environment(standin, tmp_path_factory.mktemp("gcloud"))

    return environment
