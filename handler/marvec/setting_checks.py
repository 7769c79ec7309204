"""What a value of model-config.yaml must be; errors name the key and what is allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from marvec.errors import SettingsError


def mapping(key: str, value: object) -> dict[str, object]:
    """Require a mapping; its keys become strings."""
    if not isinstance(value, Mapping):
        raise SettingsError(f"{key}: expected a mapping, got {value!r}")
    return {str(name): item for name, item in value.items()}


def known(section: str, values: Mapping[str, object], names: Sequence[str]) -> None:
    """Refuse keys that nobody reads."""
    for name in values:
        if name not in names:
            raise SettingsError(f"{section}.{name}: unknown key; known keys: {', '.join(names)}")


def text(key: str, value: object) -> None:
    """Require a string that is not empty."""
    if not isinstance(value, str) or not value:
        raise SettingsError(f"{key}: expected a non-empty string, got {value!r}")


def whole(key: str, value: object, least: int) -> None:
    """Require a whole number."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise SettingsError(f"{key}: expected a whole number of at least {least}, got {value!r}")


def boolean(key: str, value: object) -> None:
    """Require true or false."""
    if not isinstance(value, bool):
        raise SettingsError(f"{key}: expected true or false, got {value!r}")


def choice(key: str, value: object, choices: Sequence[str]) -> None:
    """Require one of some names."""
    if value not in choices:
        raise SettingsError(f"{key}: expected one of {', '.join(choices)}, got {value!r}")


def texts(key: str, value: object) -> tuple[str, ...]:
    """Require a list of strings."""
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(item, str) for item in value):
        raise SettingsError(f"{key}: expected a list of strings, got {value!r}")
    return tuple(value)
