"""The stand-in itself: every wire started, and what its clients need to be told."""

from __future__ import annotations

import atexit
import ssl
import tempfile
from pathlib import Path
from types import TracebackType

from tests.cloud.standin.calls import CallLog
from tests.cloud.standin.certificates import make_certificates, write_account
from tests.cloud.standin.core import Core, Options
from tests.cloud.standin.grpc_wire import GrpcWire
from tests.cloud.standin.listening import Listener
from tests.cloud.standin.names import LOCATIONS, Project
from tests.cloud.standin.proxy import Proxy
from tests.cloud.standin.rest import RestHandler
from tests.cloud.standin.trouble import Trouble


class StandIn:
    """A running stand-in; ends with its `with` block, with `close`, or with the process.

    Args:
        options: What it is made with.

    Attributes:
        project: The one that there is.
        authority: The file with whom clients are to trust.
        account: A service account's key file.
        plain_port: REST without TLS.
        tls_port: REST with TLS.
        grpc_port: gRPC with TLS.
        proxy: For HTTPS_PROXY.
        grpc_proxy: For grpc_proxy.
    """

    def __init__(self, options: Options) -> None:
        self.project: Project = options.project
        self._folder = tempfile.TemporaryDirectory(prefix="stand-in-")
        folder = Path(self._folder.name)
        dedicated = [f"*.{place}-{options.project.number}.prediction.vertexai.goog" for place in LOCATIONS]
        certificates = make_certificates(folder, ["*.googleapis.com", *dedicated])
        self.authority = certificates.authority
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificates.chain, certificates.key)

        class Handler(RestHandler):
            project = options.project
            storage = options.storage

        class DedicatedHandler(Handler):
            always_dedicated = True

        plain, secure, own = Listener(Handler), Listener(Handler, tls), Listener(DedicatedHandler, tls)
        self._core = Core(options, f"127.0.0.1:{own.port}" if options.local_dns else "")
        Handler.core = self._core
        self._grpc = GrpcWire(self._core, certificates)
        self._listeners = (plain, secure, own)
        for listener in self._listeners:
            listener.start()
        self.plain_port, self.tls_port, self.grpc_port = plain.port, secure.port, self._grpc.port
        self.proxy, self.grpc_proxy = Proxy(secure.port), Proxy(self._grpc.port)
        self.account = write_account(folder / "account.json", options.project.id, f"{self.address}/token")
        self._open = True
        atexit.register(self.close)

    def __enter__(self) -> StandIn:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def address(self) -> str:
        """REST without TLS."""
        return f"http://127.0.0.1:{self.plain_port}"

    @property
    def trouble(self) -> Trouble:
        """What is to go wrong."""
        return self._core.trouble

    @property
    def calls(self) -> CallLog:
        """The calls that came."""
        return self._core.calls

    def reset(self) -> None:
        """End every container, and forget everything."""
        self._core.reset()

    def close(self) -> None:
        """End everything."""
        if not self._open:
            return
        self._open = False
        atexit.unregister(self.close)
        for ending in (self.proxy, self.grpc_proxy, self._grpc, *self._listeners, self._core):
            ending.close()
        self._folder.cleanup()
