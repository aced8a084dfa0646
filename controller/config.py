"""The controller's one YAML file, read and checked before anything listens."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from topologies import Fabric, KnotlessError, load
from topologies.files import looks_like_file

VARIABLE = "KNOTLESS_CONFIG"
"""The environment variable that names the file; without it, :data:`DEFAULT_FILE`."""
DEFAULT_FILE = "knotless.yaml"
_MAX_BYTES = 1 << 20

Port = Annotated[int, Field(ge=1, le=65535, strict=True)]


class ConfigError(KnotlessError):
    """A configuration that cannot be used: which file, which key, what would be right."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Rest(_Section):
    """Where the REST interface listens."""

    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    port: Port = 8080


class Config(_Section):
    """What the controller is to install; the defaults route any fabric without deadlock.

    ``connect_timeout_s`` is how long a switch may stay away before it is called a problem.
    The other keys are the options of ``knotless plan``.
    """

    fabric: str = "torus,4,4"
    engine: str = "updown"
    vcs: Annotated[int, Field(ge=1, le=8, strict=True)] | None = None
    select: Literal["spread", "low-port"] = "spread"
    tagging: Literal["switch", "host"] = "switch"
    vlans: Literal["default", "tree"] = "default"
    root: str | None = None
    multicast: dict[int, list[str]] = Field(default_factory=dict)
    connect_timeout_s: Annotated[float, Field(gt=0, le=3600)] = 10.0
    rest: Rest = Rest()


def find(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the file to read, or None when there is none and the defaults hold.

    Raises
    ------
    ConfigError
        The file that ``KNOTLESS_CONFIG`` names is not there.

    """
    named = environment.get(VARIABLE)
    path = Path(named or DEFAULT_FILE)
    if path.is_file():
        return path
    if named:
        raise ConfigError(f"{named}: no such file ({VARIABLE} names it)")
    return None


def read(path: Path) -> Config:
    """Return the configuration in ``path``; raises ConfigError with file and key."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    if len(data) > _MAX_BYTES:
        raise ConfigError(f"{path}: larger than {_MAX_BYTES} bytes is no configuration")
    try:
        return parse(data.decode())
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text") from error
    except ConfigError as error:
        raise error.within(str(path)) from error


def parse(text: str) -> Config:
    """Return the configuration that ``text`` (YAML) holds; raises ConfigError with the key."""
    try:
        content = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # YAML's own errors span several lines, with the text quoted in them.
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark else ""
        what = getattr(error, "problem", None) or "it cannot be parsed"
        raise ConfigError(f"{where}not YAML: {what}") from error
    if content is None:
        content = {}
    if not isinstance(content, dict):
        raise ConfigError(
            f"wanted keys with values, such as 'fabric: torus,4,4', not {_brief(content)}"
        )
    try:
        return Config.model_validate(content)
    except ValidationError as error:
        raise ConfigError(_first(error)) from error


def load_fabric(config: Config, path: Path | None) -> Fabric:
    """Return the fabric that the configuration in ``path`` declares.

    A file is looked for beside the configuration. Raises KnotlessError with file and key.
    """
    spec = config.fabric
    if path and looks_like_file(spec):
        spec = str(path.parent / spec)
    try:
        return load(spec)
    except KnotlessError as error:
        raise error.within("fabric").within(str(path)) if path else error from error


def _first(error: ValidationError) -> str:
    """Return the first of pydantic's complaints as one line."""
    problem = error.errors(include_url=False)[0]
    *above, last = [str(part) for part in problem["loc"]]
    key = ".".join([*above, last])
    if problem["type"] == "extra_forbidden":
        section: type[BaseModel] = Rest if above == ["rest"] else Config
        known = ", ".join(sorted(section.model_fields))
        return f"unknown key {key!r}; known are {known}"
    return (
        f"{key}: {problem['msg'][:1].lower()}{problem['msg'][1:]}, not {_brief(problem['input'])}"
    )


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
