"""What can stop a boot.

Exception
└── LaunchError             the operator can mend it; the message is one line that says how
    ├── PortError           a port is no number, given twice, or taken
    ├── ArchiveError        an archive is missing, broken or misnamed
    ├── JavaError           no Java 11 or later
    ├── SettingsError       a setting or config.properties is wrong, or a part is not installed
    └── ModelLoadError      TorchServe runs, a model does not: it was refused, or its worker gave up
"""

from __future__ import annotations


class LaunchError(Exception):
    """A boot that cannot go on; the message is one line for the operator."""


class PortError(LaunchError):
    """A port is no number, given twice, or taken."""


class ArchiveError(LaunchError):
    """An archive is missing, broken or misnamed."""


class JavaError(LaunchError):
    """No usable Java was found."""


class SettingsError(LaunchError):
    """A setting or config.properties is wrong, or a part is not installed."""


class ModelLoadError(LaunchError):
    """TorchServe refused a model, or a model's worker gave up."""
