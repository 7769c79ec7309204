"""The gRPC wire: one generic handler over the SDK's messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
from google.protobuf.message import Message

from tests.cloud.standin.certificates import Certificates
from tests.cloud.standin.core import Core
from tests.cloud.standin.errors import ApiError, Cut
from tests.cloud.standin.methods import Method, by_full_name
from tests.cloud.standin.predictions import Asked

_THREADS = 16
_NO_CREDENTIALS = (
    "Request is missing required authentication credential. Expected OAuth 2 access token, login cookie or other valid "
    "authentication credential."
)


class GrpcWire:
    """A gRPC server with TLS on 127.0.0.1.

    Args:
        core: Carries out.
        certificates: For TLS.

    Attributes:
        port: Where it listens.
    """

    def __init__(self, core: Core, certificates: Certificates) -> None:
        self._server = grpc.server(
            ThreadPoolExecutor(_THREADS),
            handlers=(_Handlers(core),),
            # The limits are the core's to tell, in Google's words.
            options=[("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)],
        )
        credentials = grpc.ssl_server_credentials([(certificates.key.read_bytes(), certificates.chain.read_bytes())])
        self.port = int(self._server.add_secure_port("127.0.0.1:0", credentials))
        self._server.start()

    def close(self) -> None:
        """Stop, without waiting for calls."""
        self._server.stop(None).wait(10)


class _Handlers(grpc.GenericRpcHandler):  # type: ignore[misc]
    def __init__(self, core: Core) -> None:
        self._core = core

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        method = by_full_name().get(handler_call_details.method)
        if method is None:
            return None
        metadata = dict(handler_call_details.invocation_metadata)
        allowed = metadata.get("authorization", "").startswith("Bearer ")
        call = self._call(method, allowed)
        if method.name != "StreamRawPredict":
            return grpc.unary_unary_rpc_method_handler(call, method.request.FromString, _serialized)

        def stream(request: Message, context: grpc.ServicerContext) -> Iterator[Message]:
            yield call(request, context)

        return grpc.unary_stream_rpc_method_handler(stream, method.request.FromString, _serialized)

    def _call(self, method: Method, allowed: bool) -> Callable[[Message, grpc.ServicerContext], Message]:
        def call(request: Message, context: grpc.ServicerContext) -> Message:
            if not allowed:
                context.abort(grpc.StatusCode.UNAUTHENTICATED, _NO_CREDENTIALS)
            try:
                return self._core.call(method, request, "grpc", Asked(dedicated=False, size=request.ByteSize()))
            except ApiError as err:
                context.abort(grpc.StatusCode[err.code.name], err.message)
            except Cut:
                context.abort(grpc.StatusCode.UNAVAILABLE, "Socket closed")
            raise AssertionError("abort raises")

        return call


def _serialized(message: Message) -> bytes:
    return bytes(message.SerializeToString())
