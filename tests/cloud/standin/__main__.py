"""Runs a stand-in by hand: `python -m tests.cloud.standin IMAGE=STORE ...`, from the repository's root, until Ctrl-C.

It writes FOLDER/info.json, and FOLDER/sdk.sh and FOLDER/gcloud.sh to be sourced by the shell in which commands of
Google's, or ours, are tried:

    python -m tests.cloud.standin us-central1-docker.pkg.dev/demo-project/models/minilm:1.0=model_store
    . /tmp/stand-in/sdk.sh
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Event

from tests.cloud.standin.core import Options
from tests.cloud.standin.environment import gcloud_environment, sdk_environment
from tests.cloud.standin.images import Image, marvec_image, stub_image
from tests.cloud.standin.stand_in import StandIn

STUB = "stub"


def main(argv: Sequence[str]) -> int:
    """Runs it.

    Args:
        argv: The command line without the program's name.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.cloud.standin", description="Vertex AI on 127.0.0.1.")
    parser.add_argument(
        "images", nargs="+", metavar="IMAGE=STORE", help=f"an image's URI, and its model store or {STUB!r}"
    )
    parser.add_argument("--folder", type=Path, default=Path("/tmp/stand-in"), help="default: %(default)s")
    parser.add_argument("--storage", metavar="URL", help="an emulator of Cloud Storage")
    parser.add_argument("--local-dns", action="store_true", help="dedicated endpoints without the proxy")
    given = parser.parse_args(argv)
    images: dict[str, Image] = {}
    for one in given.images:
        uri, sign, store = one.partition("=")
        if not sign:
            parser.error(f"{one}: expected IMAGE=STORE")
        images[uri] = stub_image() if store == STUB else marvec_image(Path(store).resolve())
    ended = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: ended.set())
    with StandIn(Options(images, storage=given.storage, local_dns=given.local_dns)) as standin:
        _write(standin, given.folder)
        sys.stdout.write(f"{standin.address} until Ctrl-C; in another shell: . {given.folder / 'sdk.sh'}\n")
        sys.stdout.flush()
        ended.wait()
    return 0


def _write(standin: StandIn, folder: Path) -> None:
    own = folder / "gcloud"
    own.mkdir(parents=True, exist_ok=True)
    for name, environment in (("sdk.sh", sdk_environment(standin)), ("gcloud.sh", gcloud_environment(standin, own))):
        changed = {key: value for key, value in environment.items() if os.environ.get(key) != value}
        lines = [f"export {key}={shlex.quote(value)}\n" for key, value in changed.items()]
        (folder / name).write_text("".join(lines))
    info = {
        "address": standin.address,
        "tls_port": standin.tls_port,
        "grpc_port": standin.grpc_port,
        "proxy": standin.proxy.url,
        "grpc_proxy": standin.grpc_proxy.url,
        "authority": str(standin.authority),
        "account": str(standin.account),
        "project": standin.project.id,
    }
    (folder / "info.json").write_text(json.dumps(info, indent=2))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
