"""What can stop a boot.

Exception
└── LaunchError             the operator can mend it; the message is one line that says how
    ├── PortError           a port is no number, given twice, or taken
    ├── FetchError          AIP_STORAGE_URI cannot be fetched
    ├── ArchiveError        an archive is missing, broken or misnamed
    ├── JavaError           no Java 11 or later
    ├── SettingsError       a setting or config.properties is wrong, or a part is not installed
    └── ModelLoadError      TorchServe runs, a model does not: it was refused, or its worker gave up
Exception
└── Interrupted             a signal came before there was anything to end
"""

from __future__ import annotations


class LaunchError(Exception):
    """A boot that cannot go on; the message is one line for the operator."""


class PortError(LaunchError):
    """A port is no number, given twice, or taken."""


class FetchError(LaunchError):
    """The archives that AIP_STORAGE_URI names cannot be fetched."""


class ArchiveError(LaunchError):
    """An archive is missing, broken or misnamed."""


class JavaError(LaunchError):
    """No usable Java was found."""


class SettingsError(LaunchError):
    """A setting or config.properties is wrong, or a part is not installed."""


class ModelLoadError(LaunchError):
    """TorchServe refused a model, or a model's worker gave up."""


class Interrupted(Exception):
    """A signal came while nothing was being served yet: no error, just the end."""
