"""The controller's YAML file, read and checked before any port is opened."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from knotless.base import yaml_file
from knotless.base.complaints import brief, complaint
from knotless.base.errors import PlanError
from knotless.base.http_rules import dns_name
from knotless.routing.engine import loaded_engine
from knotless.routing.request import PlanRequest
from knotless.topologies import Fabric, FabricError, Host, KnotlessError, Switch, load
from knotless.topologies.formats.files import looks_like_file
from knotless.topologies.validate import validate

VARIABLE = "KNOTLESS_CONFIG"
"""The environment variable that names the file; without it, :data:`DEFAULT_FILE`."""
DEFAULT_FILE = "knotless.yaml"
MAX_CONTROLLERS = 256
"""Their numbers have eight bits in OpenFlow's generation ids."""

Port = Annotated[int, Field(ge=1, le=65535, strict=True)]
REREAD_INTERVAL_S = 5.0
"""The default time within which all switches are read again."""


class ConfigError(KnotlessError):
    """An invalid configuration; the message names file and key, and says what would be right."""


ControllerAddress = Annotated[str, Field(pattern=r"^(\S+):([0-9]{1,5})$", max_length=300)]


def _different(addresses: tuple[str, ...]) -> tuple[str, ...]:
    if len(addresses) == 1 or len(set(addresses)) != len(addresses):
        raise ValueError("must name each of several controllers once")
    if len(addresses) > MAX_CONTROLLERS:
        raise ValueError(f"must name at most {MAX_CONTROLLERS}")
    return addresses


class Rest(BaseModel):
    """The HTTP interface.

    Attributes
    ----------
    host : the address on which it listens.
    port : its port.
    token_file : file whose token permits changes; None: nothing can be changed over HTTP. The path
        is relative to this file; a file that does not exist is created with a new token.
    names : DNS names under which others ask, such as Prometheus or a proxy; requests for any
        other name are refused, those for an address or `localhost` are not.

    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    port: Port = 8080
    token_file: Annotated[str, Field(min_length=1)] | None = None
    names: Annotated[tuple[Annotated[str, AfterValidator(dns_name)], ...], Field(strict=False)] = ()


class DeclaredHost(BaseModel):
    """A host of a fabric that is learned: as in a fabric file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    mac: str
    ip: str
    switch: Annotated[str, Field(pattern=r"^s[1-9][0-9]{0,19}$")]
    port: Port

    @property
    def host(self) -> Host:
        """The host."""
        return Host(self.name, self.mac.lower(), self.ip, self.switch, self.port)


class Config(BaseModel, PlanRequest, extra="forbid", frozen=True, strict=True):
    """The configuration; its defaults route any fabric without deadlock.

    Attributes
    ----------
    fabric : a spec, or a file; its path is relative to this file. With `discovery: learn` the JSON
        file to which the fabric is written.
    allow_deadlock : whether to install a plan even if it can deadlock under its flow control.
    connect_timeout_s : how long a switch may be absent before it is reported as a problem, and at
        the start before the others are served without it.
    kept_changes : how many changes of routes `GET /changes` shows, with their records.
    state_file : file in which changes and drained parts are kept that operators request over HTTP,
        so that a controller that starts again keeps them; None: they end with the controller. The
        file before the last request is kept beside it (`NAME-before.json`), what links have lost
        (`NAME-lost.json`), a change that is not complete (`NAME-change.json`), and the rules that
        switches have confirmed (`NAME-rules.json`). The path is relative to this file.
    controllers : several controllers with this configuration, by the address and port of their
        HTTP interfaces (`10.0.0.1:8080`); one of them is active, the others are on standby. Each
        finds itself by its own. Changes and drained parts are shared through `state_file`.
        Empty: there is only this one.
    openflow_socket : Unix socket to which switches of this machine connect, and no program of
        another user can; of several controllers the second one listens on `NAME-2.sock` for
        `NAME.sock`, and so on. Its path is relative to this file. OpenFlow is then served on a TCP
        port only if an option names one, or with TLS. None: switches connect by TCP.
    emulator : control socket of the link emulator, for events of pause storms and to see whether
        probes wait at a paused port; its path is relative to this file. None: there is no emulator.
    open_vswitch : directory with the control sockets (`ovs-vswitchd.PID.ctl`) of the Open vSwitch
        processes that are switches of the fabric on this machine; when routes change they are
        asked to remove their cached entries, also those of other bridges. Its path is relative to
        this file. None: they are not asked.
    discovery : what probes find out about links between switches: `verify` that they are wired as
        declared and lose no frames silently, or `none`: no probes are sent. With `learn` they also
        find the fabric, if its file does not exist; it is then written, and used.
    learn_quiet_s : how long nothing new must be found until a learned fabric is complete.
    hosts : hosts of a learned fabric that send no frames by which they could be found, with `name`,
        `mac`, `ip`, `switch` and `port`. The switch with dpid 5 is `s5`.
    reread_interval_s : time within which all switches are read again, one after the other, to see
        whether others have changed their rules. With more than 5,000 rules a second in all it is
        longer.
    settle_s : time after the last failure, return or drain until routes that repairs have left
        return to those that follow from the configured plan; what a failure cuts is served at once.
    probe_interval_ms : time between two probes of a link in each direction. Above 5,000 probes a
        second in all it is longer.
    rest : the HTTP interface.

    """

    fabric: str = "torus,4,4"
    allow_deadlock: bool = False
    connect_timeout_s: Annotated[float, Field(gt=0, le=3600)] = 10.0
    kept_changes: Annotated[int, Field(ge=1, le=1000, strict=True)] = 16
    state_file: Annotated[str, Field(min_length=1)] | None = None
    controllers: Annotated[
        tuple[ControllerAddress, ...], Field(strict=False), AfterValidator(_different)
    ] = ()
    openflow_socket: Annotated[str, Field(min_length=1)] | None = None
    emulator: Annotated[str, Field(min_length=1)] | None = None
    open_vswitch: Annotated[str, Field(min_length=1)] | None = None
    discovery: Literal["verify", "learn", "none"] = "verify"
    learn_quiet_s: Annotated[float, Field(gt=0, le=3600)] = 5.0
    hosts: Annotated[tuple[DeclaredHost, ...], Field(strict=False)] = ()
    reread_interval_s: Annotated[float, Field(gt=0, le=3600)] = REREAD_INTERVAL_S
    settle_s: Annotated[float, Field(ge=0, le=3600)] = 10.0
    probe_interval_ms: Annotated[int, Field(ge=20, le=60_000, strict=True)] = 100
    rest: Rest = Rest()


def find(environment: Mapping[str, str]) -> Path | None:
    """Return the file to read, or None if there is none; then the defaults apply.

    Parameters
    ----------
    environment : mapping of str to str
        The environment variables, of which :data:`VARIABLE` may name the file.

    Returns
    -------
    Path or None
        That file, or :data:`DEFAULT_FILE` in the current directory, if there is one.

    Raises
    ------
    ConfigError
        The file that ``KNOTLESS_CONFIG`` names does not exist.

    """
    named = environment.get(VARIABLE)
    path = Path(named or DEFAULT_FILE)
    if path.is_file():
        return path
    if named:
        raise ConfigError(f"{named}: no such file ({VARIABLE} names it)")
    return None


def read(path: Path) -> Config:
    """Read the configuration in a file.

    Parameters
    ----------
    path : Path
        A YAML file. An engine that is a Python file, relative to ``path``, is loaded.

    Returns
    -------
    Config
        The configuration, checked.

    Raises
    ------
    ConfigError
        The file cannot be read, a key is unknown, or its value is invalid; the message names file
        and key.

    """
    content = yaml_file.read(path, ConfigError)
    try:
        config = _config(content)
        engine = loaded_engine(config.engine, path.parent)
    except ConfigError as error:
        raise error.within(str(path)) from error
    except PlanError as error:
        raise ConfigError(f"{path}: engine: {error}") from error
    return config.model_copy(update={"engine": engine})


def parse(text: str) -> Config:
    r"""Parse the configuration in ``text`` (YAML).

    Parameters
    ----------
    text : str
        The content of a file. Keys that are not given have their defaults.

    Returns
    -------
    Config
        The configuration, checked.

    Raises
    ------
    ConfigError
        A key is unknown or its value is invalid; the message names the key.

    Examples
    --------
    >>> config = parse("fabric: mesh,4,4\nengine: updown\nrest: {port: 8081}")
    >>> config.engine, config.rest.port, config.discovery
    ('updown', 8081, 'verify')
    >>> parse("fabrik: mesh,4,4")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    knotless.controller.config.ConfigError: unknown key 'fabrik'; known are allow_deadlock, ...

    """
    return _config(yaml_file.parse(text, ConfigError))


def _config(content: object) -> Config:
    if content is None:
        content = {}
    if not isinstance(content, dict):
        raise ConfigError(
            f"must have keys with values, such as 'fabric: torus,4,4', not {brief(content)}"
        )
    try:
        return Config.model_validate(content)
    except ValidationError as error:
        raise ConfigError(_first(error)) from error


def to_learn(config: Config, path: Path | None) -> Path | None:
    """Return the file for the fabric that is to be learned.

    Parameters
    ----------
    config : Config
        The configuration.
    path : Path or None
        Its file, to which the fabric's file is relative.

    Returns
    -------
    Path or None
        The file to write; None: nothing is learned, or the file exists already.

    Raises
    ------
    ConfigError
        What the configuration says cannot be learned.

    """
    try:
        return _to_learn(config, path)
    except KnotlessError as error:
        raise ConfigError(f"{path}: {error}" if path else str(error)) from error


def _to_learn(config: Config, path: Path | None) -> Path | None:
    if config.discovery != "learn":
        if config.hosts:
            raise ConfigError("hosts: they are only used with 'discovery: learn'")
        return None
    if not config.fabric.lower().endswith(".json"):
        raise ConfigError(
            "fabric: with 'discovery: learn' it is the file that is written, such as learned.json,"
            f" not {config.fabric!r}"
        )
    if config.controllers:
        raise ConfigError(
            "discovery: several controllers cannot learn a fabric; have one learn it, then use its"
            " file with 'discovery: verify'"
        )
    hosts = tuple(declared.host for declared in config.hosts)
    names = dict.fromkeys(host.switch for host in hosts)
    switches = tuple(Switch(name, int(name[1:])) for name in names)
    if hosts:
        try:
            validate(Fabric("declared", switches, hosts, ()), whole=False)
        except FabricError as error:
            raise error.within("hosts") from error
    file = fabric_path(config, path)
    return None if file.exists() else file


def load_fabric(config: Config, path: Path | None) -> Fabric:
    """Return the fabric of a configuration.

    Parameters
    ----------
    config : Config
        The configuration.
    path : Path or None
        Its file, to which the names of files in it are relative.

    Returns
    -------
    Fabric
        The fabric, validated.

    Raises
    ------
    KnotlessError
        There is no such fabric; the message names file and key.

    """
    spec = config.fabric
    try:
        return load(str(fabric_path(config, path)) if looks_like_file(spec) else spec)
    except KnotlessError as error:
        raise error.within("fabric").within(str(path)) if path else error from error


def fabric_path(config: Config, path: Path | None) -> Path:
    """Return where the file of the fabric is that the configuration in ``path`` names."""
    return path.parent / config.fabric if path else Path(config.fabric)


def token_path(config: Config, path: Path | None) -> Path | None:
    """Return where the token of the configuration in ``path`` is, if it names a file."""
    return _beside(path, config.rest.token_file)


def state_path(config: Config, path: Path | None) -> Path | None:
    """Return where changes and drained parts are kept, if the configuration names a file."""
    return _beside(path, config.state_file)


def own_number(config: Config, host: str, port: int) -> int | None:
    """Return the number of this controller among several.

    Parameters
    ----------
    config : Config
        The configuration, which all of them share.
    host, port : str, int
        Where this one listens for HTTP.

    Returns
    -------
    int or None
        Its place in ``controllers``, from 0; None: it is alone.

    Raises
    ------
    ConfigError
        It is not among the ``controllers``.

    Examples
    --------
    >>> config = parse("controllers: ['10.0.0.1:8080', '10.0.0.2:8080']")
    >>> own_number(config, "10.0.0.2", 8080)
    1

    """
    if not config.controllers:
        return None
    here = f"{host}:{port}"
    if here not in config.controllers:
        raise ConfigError(
            f"controllers: {', '.join(config.controllers)} do not name this one, which listens for"
            f" HTTP on {here} (rest.host and rest.port, or --wsapi-host and --wsapi-port)"
        )
    return config.controllers.index(here)


def openflow_socket_path(config: Config, path: Path | None, number: int | None) -> Path | None:
    """Return where one of several controllers, or the only one (None), listens for switches."""
    first = _beside(path, config.openflow_socket)
    return first.with_stem(f"{first.stem}-{number + 1}") if first and number else first


def emulator_path(config: Config, path: Path | None) -> Path | None:
    """Return the control socket that the configuration in ``path`` names, if it does."""
    return _beside(path, config.emulator)


def open_vswitch_path(config: Config, path: Path | None) -> Path | None:
    """Return the directory of control sockets that the configuration in ``path`` names."""
    return _beside(path, config.open_vswitch)


def _beside(path: Path | None, name: str | None) -> Path | None:
    if name is None:
        return None
    return path.parent / name if path else Path(name)


def _first(error: ValidationError) -> str:
    """Return the first error as one line; for an unknown key, with the known ones."""
    problem = error.errors(include_url=False)[0]
    if problem["type"] != "extra_forbidden":
        return complaint(error)
    *above, last = [str(part) for part in problem["loc"]]
    sections: dict[str, type[BaseModel]] = {"rest": Rest, "hosts": DeclaredHost}
    section = sections.get(above[0], Config) if above else Config
    names = ", ".join(sorted(section.model_fields))
    return f"unknown key {'.'.join([*above, last])!r}; known are {names}"
