"""The variables that lead an unmodified client to a stand-in, over those of this process."""

from __future__ import annotations

import os
from pathlib import Path

from tests.cloud.standin.stand_in import StandIn

# The tests' own machine may set these; a client under test must not go by them.
_CLEARED = (
    "GOOGLE_CLOUD_PROJECT",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "CLOUDSDK_CONFIG",
    "STORAGE_EMULATOR_HOST",
    "HTTP_PROXY",
    "http_proxy",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
    "no_grpc_proxy",
)


def sdk_environment(stand_in: StandIn) -> dict[str, str]:
    """Return the variables for a subprocess that uses Google's SDK: all its hosts are the stand-in's.

    The bundles of certificates are set whatever the machine says: one that presets them would be trusted instead.

    Args:
        stand_in: Where it is led to.
    """
    authority = str(stand_in.authority)
    return {
        **{name: value for name, value in os.environ.items() if name not in _CLEARED},
        "HTTPS_PROXY": stand_in.proxy.url,
        "https_proxy": stand_in.proxy.url,
        "grpc_proxy": stand_in.grpc_proxy.url,
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
        "REQUESTS_CA_BUNDLE": authority,
        "CURL_CA_BUNDLE": authority,
        "SSL_CERT_FILE": authority,
        "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": authority,
        "GOOGLE_APPLICATION_CREDENTIALS": str(stand_in.account),
        "GOOGLE_CLOUD_PROJECT": stand_in.project.id,
        "PROJECT": stand_in.project.id,
    }


def gcloud_environment(stand_in: StandIn, folder: Path) -> dict[str, str]:
    """Return the variables for gcloud, over plain HTTP.

    Args:
        stand_in: Where it is led to.
        folder: An empty one, for gcloud's own settings and logs.
    """
    token = folder / "token"
    token.write_text("a-token-of-the-stand-in")
    return {
        **{name: value for name, value in os.environ.items() if name not in _CLEARED},
        "CLOUDSDK_CONFIG": str(folder),
        "CLOUDSDK_CORE_PROJECT": stand_in.project.id,
        "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE": str(token),
        # The slash at the end must be there.
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM": f"{stand_in.address}/",
        "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE": str(stand_in.authority),
        "REQUESTS_CA_BUNDLE": str(stand_in.authority),
        "CURL_CA_BUNDLE": str(stand_in.authority),
        "CLOUDSDK_CORE_DISABLE_PROMPTS": "1",
        "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "1",
        "CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK": "1",
        "CLOUDSDK_CORE_CHECK_GCE_METADATA": "false",
    }
