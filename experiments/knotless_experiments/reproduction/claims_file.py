"""``claims.yaml``: the claims of a paper, read and checked.

``experiments/README.md`` explains the keys. A claim may stand for several: ``each`` lists values
of variables, and ``{name}`` in any text of the claim is replaced by the value of a variable. There
are no expressions: what is computed is named, see :mod:`.selectors` and :mod:`.papers`.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictInt,
    StrictStr,
    TypeAdapter,
    ValidationError,
)

from knotless.base import yaml_file
from knotless.base.complaints import brief, complaint
from knotless.base.errors import KnotlessError
from knotless_experiments.framework.experiment import load
from knotless_experiments.reproduction.claim import (
    Claim,
    Compute,
    Expectation,
    Headline,
    Paper,
    Plot,
    Section,
)
from knotless_experiments.reproduction.rows import COMPARED
from knotless_experiments.reproduction.selectors import SELECTORS

NAME = "claims.yaml"
FUNCTION = "function"
"""The key of ``ours`` that names a function of the paper's own module."""
VARIABLE = re.compile(r"\{([^{}]+)\}")
_PACKAGE = __name__.rpartition(".")[0]

Values = Mapping[str, Any]


class ClaimsError(KnotlessError):
    """A mistake in a file of claims: the file, the claim, and what is wrong."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Limits(_Model):
    """The limits between which our figure agrees with words, or is expected."""

    near: float | None = None
    within: float = 0.0
    below: float | None = None
    above: float | None = None

    def __call__(self, low: float, high: float) -> bool:
        """Tell whether all of an interval agrees."""
        return (
            (self.near is None or max(self.near - low, high - self.near) <= self.within)
            and (self.below is None or high < self.below)
            and (self.above is None or low > self.above)
        )

    def __str__(self) -> str:
        """Return the rule in words."""
        parts = [
            "" if self.near is None else f"within {self.within:g} of {self.near:g}",
            "" if self.below is None else f"below {self.below:g}",
            "" if self.above is None else f"above {self.above:g}",
        ]
        return " and ".join(filter(None, parts))


class _Expectation(_Model):
    expected: _Limits
    because: StrictStr
    refuted_by: StrictStr

    def value(self) -> Expectation:
        """Return the expectation of a claim."""
        words = str(self.expected)
        return Expectation(self.expected, words, self.because, self.refuted_by)


class _Headline(_Model):
    words: str
    place: str = ""
    what: str = ""


class _Plot(_Model):
    name: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    caption: str
    draw: str
    parameters: Annotated[dict[str, Any], Field(alias="with", default_factory=dict)]


class _Section(_Model):
    title: str
    claims: list[dict[str, Any]] = []
    plots: list[_Plot] = []
    commands: list[str] = []
    notes: list[str] = []
    missing: list[str] = []


class _File(_Model):
    paper: Annotated[StrictStr, Field(pattern=r"^\d{3}$")]
    title: str
    headlines: list[_Headline] = []
    printed: dict[str, Any] = {}
    sections: list[_Section]


def _compared(name: str) -> str:
    if name not in COMPARED:
        raise ValueError(f"must be one of {', '.join(COMPARED)}")
    return name


def _number_or_words(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("must be a figure or words")
    return value


class _Claim(_Model):
    """A claim after its variables and printed figures were filled in."""

    place: StrictStr
    what: StrictStr
    theirs: Annotated[Any, AfterValidator(_number_or_words)]
    experiment: Annotated[str, AfterValidator(_compared)]
    ours: dict[str, Any] | None
    why: StrictStr = ""
    digits: Annotated[StrictInt, Field(ge=0, le=9)] = 2
    places: list[Literal["emulation", "simulation", "analysis"]] = ["emulation", "simulation"]
    mark: Literal["", "fitted", "inferred"] = ""
    effect: bool | None = None
    agrees: _Limits | None = None
    expectation: _Expectation | None = None

    @property
    def is_effect(self) -> bool:
        """Tell whether the figure is a ratio that is 1 without an effect."""
        return "ratio" in (self.ours or {}) if self.effect is None else self.effect


class _Exception(BaseModel):
    """Keys of a claim that differ where variables have certain values."""

    model_config = ConfigDict(extra="allow")

    when: dict[str, Any]
    omit: bool = False


_REPEATED = ("each", "but")


def read(path: Path) -> Paper:
    """Return the paper of a file of claims, whose folder has the name of the first author.

    Raises ClaimsError with the file, the claim, and what is wrong.
    """
    try:
        return _paper(path.parent.name, yaml_file.read(path, ClaimsError))
    except ValidationError as problem:
        raise ClaimsError(f"{path}: {complaint(problem)}") from problem
    except ClaimsError as problem:
        if str(problem).startswith(str(path)):
            raise
        raise problem.within(str(path)) from problem


def _paper(author: str, content: object) -> Paper:
    file = _File.model_validate(content)
    sections = []
    for section in file.sections:
        claims = [
            claim for entry in section.claims for claim in _claims(author, file, section, entry)
        ]
        plots = [_plot(author, plot) for plot in section.plots]
        sections.append(
            Section(section.title, claims, plots, section.commands, section.notes, section.missing)
        )
    headlines = [Headline(file.paper, each.words, each.place, each.what) for each in file.headlines]
    paper = Paper(file.paper, author, file.title, headlines, file.printed, sections)
    for headline in headlines:
        _check_headline(paper, headline)
    return paper


def _check_headline(paper: Paper, headline: Headline) -> None:
    if not headline.place:
        return
    named = [c for c in paper.claims if c.place == headline.place and headline.what in c.what]
    where = f"headline {headline.words!r}: "
    if len(named) != 1:
        raise ClaimsError(f"{where}{len(named)} claims have this place and part of words, not one")
    if isinstance(named[0].theirs, str) and named[0].agrees is None:
        raise ClaimsError(f"{where}agrees: it is missing, and its claim is in words")


def _claims(author: str, file: _File, section: _Section, entry: Values) -> Iterator[Claim]:
    """Yield the claims that an entry stands for."""
    where = f"claim {_title(entry)} of section {section.title!r}"
    try:
        own = {key: value for key, value in entry.items() if key not in _REPEATED}
        exceptions = TypeAdapter(list[_Exception]).validate_python(entry.get("but", []))
        for variables in _variables(entry.get("each", [])):
            values = dict(own)
            omit = False
            for exception in exceptions:
                if _matches(exception.when, variables):
                    omit = omit or exception.omit
                    values |= exception.model_extra or {}
            if omit:
                continue
            filled = _printed(_filled(values, variables), file.printed)
            where = f"claim {_title(filled)} of section {section.title!r}"
            claim = _Claim.model_validate({**filled, "theirs": _theirs(filled.get("theirs"))})
            yield Claim(
                file.paper,
                claim.place,
                claim.what,
                claim.theirs,
                claim.experiment,
                _compute(author, claim),
                claim.why,
                claim.digits,
                tuple(claim.places),
                claim.mark,
                claim.is_effect,
                claim.agrees,
                None if claim.expectation is None else claim.expectation.value(),
            )
    except ValidationError as problem:
        raise ClaimsError(f"{where}: {complaint(problem)}") from problem
    except ClaimsError as problem:
        raise problem.within(where) from problem


def _title(entry: Values) -> str:
    return f"{brief(entry.get('place'))}, {brief(entry.get('what'))}"


def _variables(each: object) -> Iterator[Values]:
    """Yield the values of all variables, for each claim of an entry.

    ``{name: [a, b]}`` is one variable, ``[{...}, {...}]`` several at once, and a list of such
    lists all combinations. A later list may use variables of an earlier one.
    """
    axes = [each] if isinstance(each, Mapping) or _is_axis(each) else each
    if not isinstance(axes, list):
        raise ClaimsError(f"each: lists of variables are needed, not {brief(each)}")
    for combination in product(*map(_axis, axes)):
        variables: dict[str, Any] = {}
        for part in combination:
            variables |= _filled(part, variables)
        yield variables


def _is_axis(each: object) -> bool:
    return isinstance(each, list) and bool(each) and all(isinstance(one, dict) for one in each)


def _axis(axis: object) -> list[Values]:
    if isinstance(axis, dict) and len(axis) == 1:
        ((name, values),) = axis.items()
        if isinstance(values, list):
            return [{name: value} for value in values]
    if _is_axis(axis):
        assert isinstance(axis, list)  # noqa: S101 - for mypy
        return axis
    raise ClaimsError(f"each: {brief(axis)} is not a list of variables")


def _matches(when: Values, variables: Values) -> bool:
    for name, wanted in when.items():
        if name not in variables:
            raise ClaimsError(f"but: {name!r} is no variable of each")
        value = variables[name]
        if value not in wanted if isinstance(wanted, list) else value != wanted:
            return False
    return True


def _filled(value: Any, variables: Values) -> Any:
    """Replace ``{name}`` by the value of a variable: alone of any type, within text as text."""
    if isinstance(value, dict):
        return {key: _filled(each, variables) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, variables) for each in value]
    if not isinstance(value, str):
        return value

    def of_variable(match: re.Match[str]) -> Any:
        if match[1] not in variables:
            raise ClaimsError(f"{match[0]}: there is no such variable in each")
        return variables[match[1]]

    if (whole := VARIABLE.fullmatch(value)) is not None:
        return of_variable(whole)
    return VARIABLE.sub(lambda match: str(of_variable(match)), value)


def _printed(value: Any, tables: Values) -> Any:
    """Replace ``{table: NAME, keys: [KEY, ...]}`` by the figure of a printed table."""
    if isinstance(value, list):
        return [_printed(each, tables) for each in value]
    if not isinstance(value, dict):
        return value
    if set(value) != {"table", "keys"}:
        return {key: _printed(each, tables) for key, each in value.items()}
    if not isinstance(value["keys"], list):
        raise ClaimsError(f"keys: {brief(value['keys'])} is not a list")
    figure: Any = tables
    for key in (value["table"], *value["keys"]):
        if not (isinstance(figure, dict) and isinstance(key, str) and key in figure):
            raise ClaimsError(f"printed: there is no {key!r} in {brief(value)}")
        figure = figure[key]
    return figure


def _theirs(value: Any) -> Any:
    """Return the paper's figure: as it is, or the ratio of two, of which the first may be words."""
    if not isinstance(value, dict):
        return value
    parts = value.get("ratio")
    if set(value) != {"ratio"} or not isinstance(parts, list) or len(parts) != 2:
        raise ClaimsError(f"theirs: a figure, words or {{ratio: [A, B]}}, not {brief(value)}")
    above, below = parts
    if isinstance(above, str):
        return above
    if not isinstance(below, int | float) or not below or not isinstance(above, int | float):
        raise ClaimsError(f"theirs: {brief(above)} over {brief(below)} is no ratio")
    return above / below


def _compute(author: str, claim: _Claim) -> Compute:
    """Return the computation that ``ours`` names."""
    ours = claim.ours
    if ours is None:
        return lambda _: None
    if FUNCTION in ours:
        parameters = {key: value for key, value in ours.items() if key != FUNCTION}
        function = _function(_module(f"papers.{author}"), str(ours[FUNCTION]), parameters)
        hints = get_type_hints(function)
        for name, value in parameters.items():
            try:
                TypeAdapter(hints[name]).validate_python(value)
            except ValidationError as problem:
                raise ClaimsError(f"ours: {name}: {complaint(problem)}") from problem
        return partial(function, **parameters)
    kinds = [name for name in SELECTORS if name in ours]
    if len(kinds) != 1:
        raise ClaimsError(f"ours: one of {', '.join([*SELECTORS, FUNCTION])} is needed")
    try:
        selector = SELECTORS[kinds[0]].model_validate(ours)
    except ValidationError as problem:
        raise ClaimsError(f"ours: {complaint(problem)}") from problem
    columns = load(claim.experiment).columns
    names = {*columns.stored(), *columns.conditions, "seed"}
    for name in selector.names():
        if name not in names:
            raise ClaimsError(f"ours: {claim.experiment} has no column {name!r}")
    return selector.compute


def _plot(author: str, plot: _Plot) -> Plot:
    try:
        function = _function(_module(f"plots.{author}"), plot.draw, plot.parameters, 2)
    except ClaimsError as problem:
        raise problem.within(f"plot {plot.name!r}") from problem
    return Plot(plot.name, plot.caption, partial(function, **plot.parameters))


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(f"{_PACKAGE}.{name}")
    except ModuleNotFoundError as problem:
        path = f"experiments/knotless_experiments/reproduction/{name.replace('.', '/')}.py"
        raise ClaimsError(f"there is no file {path} with functions of this paper") from problem


def _function(
    module: ModuleType, name: str, parameters: Values, given: int = 1
) -> Callable[..., Any]:
    """Return a function of a module that takes these parameters after ``given`` others."""
    functions = {
        key: value
        for key, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and key[0] != "_"
    }
    if name not in functions:
        raise ClaimsError(f"{name!r} is no function of {module.__name__}: {', '.join(functions)}")
    function: Callable[..., Any] = functions[name]
    try:
        inspect.signature(function).bind(*[None] * given, **parameters)
    except TypeError as problem:
        raise ClaimsError(f"function {name!r}: {problem}") from problem
    return function
