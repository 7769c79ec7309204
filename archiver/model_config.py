"""model-config.yaml: what TorchServe and the handler read; the commented template of it is the one at the root."""

from __future__ import annotations

import yaml

from marvec.settings import Settings

_HEADER = "# Written by `marvec pack`. What each key means: model-config.yaml in Marvec's repository.\n"
_LINE_WIDTH = 1000  # prompts stay on one line


def render(settings: Settings, *, batch_size: int, workers: int | None) -> str:
    """Write the file's text.

    Args:
        settings: The `handler:` section.
        batch_size: Requests that TorchServe hands over together.
        workers: Worker processes; None leaves them to the launcher, which knows the machine.
    """
    frontend: dict[str, object] = {} if workers is None else {"minWorkers": workers, "maxWorkers": workers}
    frontend |= {
        "batchSize": batch_size,
        "maxBatchDelay": 1,  # 0 silently means 100
        "responseTimeout": 120,
        "startupTimeout": 600,
        "maxRetryTimeoutInSec": 30,
        "jobQueueSize": 100,
        "handler": settings.to_mapping(),
    }
    return _HEADER + yaml.safe_dump(frontend, sort_keys=False, allow_unicode=True, width=_LINE_WIDTH)
