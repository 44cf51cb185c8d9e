"""The settings of a chain as one frozen value, and the panels that show them: model, moves and run.

`SamplerSettings` turns arguments with the same meaning into equal values. So a control that is changed and
changed back needs no restart. Iterations and burn-in are not among them: they can change while a chain runs.

The moves offered are the named schedules, and every registered move that none of them has. A move's name, its
options and their titles come from the move itself. The panel of the moves is made when it is first opened.
"""

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from html import escape
from typing import Any, Generic, NamedTuple, TypeVar, cast

import numpy as np
from ipywidgets import VBox, Widget
from numpy.typing import ArrayLike

from ewens_widgets.datasets import Dataset
from ewens_widgets.model.posterior import ShapesName, check_nu_grid, default_nu_grid, default_theta_grid
from ewens_widgets.model.priors import Ewens, FiniteMixture, PartitionPrior
from ewens_widgets.sampling.moves.move import MOVES, Move
from ewens_widgets.sampling.moves.schedule import SCHEDULES, Repeated, resolve_schedule
from ewens_widgets.sampling.sampler import Sampler
from ewens_widgets.sampling.state import INITIAL
from ewens_widgets.views.base import Silence, assign, button, look, note, show_if
from ewens_widgets.views.fields import (
    Field,
    button_choice,
    choice,
    entry,
    option_field,
    parse_grid,
    parse_positive,
    read_shown,
    show_only,
    whole_number,
)
from ewens_widgets.views.prior_chooser import PriorChooser, kind_of

W = TypeVar("W", bound=Widget)

_PRIOR = Ewens(1.0)
_TIPS = {
    "preset": "Recommended combinations of shapes and prior",
    "model": "Transformations of the data to which the clusters are invariant",
    "shapes": "All clusters share one covariance, or each has its own, pooled towards a common one",
    "alpha": "Parameter of the prior of θ: a larger α puts more weight near θ = 1",
    "grid": "Values of θ, the variance between clusters divided by that within; powers of 2 or numbers",
    "nu": "Values of the pooling ν: a larger ν makes covariances more similar; powers of 2 or numbers",
    "schedule": "Moves of an iteration",
    "splits": "Informed split-merge proposals per iteration",
    "sweeps": "Gibbs sweeps per iteration; a sweep resamples the cluster of every object",
    "repeats": "Number of proposals per iteration",
    "metric": "Distances that the proposal uses",
    "acceptance": "The paper prints the acceptance ratio inverted; the wrong version is for teaching",
    "initial": "Initial partition. Default: singletons, as in the paper; one cluster with own shapes or "
    "with a prior other than the Ewens prior",
    "seed": "The same seed and settings give the same chain",
    "iterations": "The chain stops after this iteration; you can add more at any time",
    "burn_in": "First iterations, which averages, tree, heatmap and answer leave out",
}


@dataclass(frozen=True)
class SamplerSettings:
    """Arguments of the sampler. Equal settings and data give the same chain."""

    model: str = "II"
    shapes: str = "common"
    prior: PartitionPrior = _PRIOR
    alpha: float = 1.0
    theta_grid: Any = None
    nu_grid: Any = None
    moves: tuple[Repeated, ...] = ()
    initial: Any = None
    metric: str = "canonical"
    acceptance: str = "metropolis-hastings"
    seed: int | None = 0
    centre: str = "mean"

    def __post_init__(self) -> None:
        """Turn settings with the same meaning into equal values."""
        grid: ArrayLike = default_theta_grid() if self.theta_grid is None else self.theta_grid
        object.__setattr__(self, "theta_grid", tuple(np.ravel(grid).astype(float).tolist()))
        if self.shapes == "own" or self.nu_grid is not None:
            object.__setattr__(self, "nu_grid", tuple(check_nu_grid(self.nu_grid).tolist()))
        object.__setattr__(self, "moves", resolve_schedule(self.moves or "default", self.shapes))
        if self.initial is not None and not isinstance(self.initial, str):
            object.__setattr__(self, "initial", tuple(np.ravel(self.initial).tolist()))

    def make_sampler(self, data: Dataset) -> tuple[Sampler, str]:
        """Make the sampler; return it with its warnings."""
        arguments = {name: getattr(self, name) for name in self.__dataclass_fields__}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            sampler = Sampler(data, **arguments)
        return sampler, " ".join(str(warning.message) for warning in caught)


class Later(VBox, Generic[W]):
    """A box whose content is made when it is first opened, or first needed."""

    children: tuple[Widget, ...]

    def __init__(self, content: Callable[[], W]) -> None:
        super().__init__(**look())
        self._content = content

    @property
    def is_made(self) -> bool:
        """Whether the content is there."""
        return bool(self.children)

    @property
    def content(self) -> W:
        """The content, made now if need be."""
        if not self.children:
            self.children = (self._content(),)
        return cast("W", self.children[0])


# Model and priors.

_MODELS = [
    ("I", "I", "Model I: invariant to shifts, rotations and one scale for all columns"),
    ("II", "II", "Model II: invariant to shifts and a scale for each column"),
    ("III", "III", "Model III: invariant to shifts and all invertible linear maps"),
]
INVARIANCES = {
    "I": "shifts, rotations, and one scale factor for all columns",
    "II": "shifts, and a scale factor for each column",
    "III": "shifts and all invertible linear maps",
}
"""What the posterior under each model is invariant to."""

_SHAPES: list[tuple[str, ShapesName]] = [("common", "common"), ("one per cluster", "own")]
_DEFAULT_GRIDS = {"grid": "2^-3 … 2^10", "nu": "2^1 … 2^8"}
_MIXED = "mixed"


class ModelPreset(NamedTuple):
    """Recommended shapes and prior; another prior of the same kind is the same preset."""

    title: str
    shapes: ShapesName
    prior: PartitionPrior
    purpose: str


_PRESETS = {
    "paper": ModelPreset(
        "as in the paper",
        "common",
        Ewens(1.0),
        "All clusters share one covariance; their number grows with n.",
    ),
    "own": ModelPreset(
        "own shapes",
        "own",
        FiniteMixture(),
        "Each cluster has its own covariance; use this to estimate the number of clusters.",
    ),
}


def _parse_nu_grid(text: str) -> Any:  # noqa: ANN401 - a grid, or None
    return parse_grid(text, check_nu_grid)


class ModelPanel(VBox):
    """Fields of model and prior; `more` has those of shapes, α and the grids of θ and ν."""

    def __init__(self) -> None:
        presets = [(preset.title, name) for name, preset in _PRESETS.items()]
        self._preset = "paper"
        self.prior = PriorChooser(_PRESETS["paper"].prior)
        kinds = [*presets, ("custom", _MIXED)]
        self._own_fields = {
            "preset": choice("preset", kinds, "paper", "ew-preset", _TIPS["preset"]),
            "model": button_choice("model", _MODELS, "II", "ew-model", _TIPS["model"]),
            "shapes": choice("shapes", _SHAPES, "common", "ew-shapes", _TIPS["shapes"]),
            "alpha": entry("α", "1", parse_positive("α"), "ew-alpha", _TIPS["alpha"]),
            "grid": entry("θ grid", _DEFAULT_GRIDS["grid"], parse_grid, "ew-grid", _TIPS["grid"]),
            "nu": entry("ν grid", _DEFAULT_GRIDS["nu"], _parse_nu_grid, "ew-nu-grid", _TIPS["nu"]),
        }
        rest = [field for name, field in self._own_fields.items() if name != "model"]
        self.more = VBox(tuple(rest), **look("ew-model-box"))
        super().__init__((self._own_fields["model"], self.prior), **look("ew-model-box"))

    @property
    def fields(self) -> dict[str, Field]:
        """All fields by name, those of the prior too."""
        return {**self._own_fields, **self.prior.fields}

    def arrange(self) -> None:
        """Apply the preset, if another one was chosen; show the fields that apply.

        This may set controls; observers must not treat that as a change by the user.
        """
        own = self._own_fields
        chosen = own["preset"].control.value
        if chosen != self._preset and chosen in _PRESETS:
            own["shapes"].control.value = _PRESETS[chosen].shapes
            self.prior.show(_PRESETS[chosen].prior)
        self.prior.arrange()
        self._name_preset()
        own["model"].help_text = f"Invariant to {INVARIANCES[own['model'].control.value]}."
        has_own = own["shapes"].control.value == "own"
        show_only(own, set(own) - (set() if has_own else {"nu"}))

    def _name_preset(self) -> None:
        """Show which preset the shapes and the prior belong to."""
        shapes, kind = self._own_fields["shapes"].control.value, self.prior.chosen
        matching = (
            name
            for name, preset in _PRESETS.items()
            if preset.shapes == shapes and kind_of(preset.prior) is kind
        )
        self._preset = next(matching, _MIXED)
        field = self._own_fields["preset"]
        assign(field.control, value=self._preset)
        field.help_text = "" if self._preset == _MIXED else _PRESETS[self._preset].purpose

    def read(self) -> dict[str, Any]:
        """Arguments of `SamplerSettings`; a wrong value is explained next to its field, and raises."""
        try:
            prior = self.prior.read()
        except ValueError:
            read_shown(self._own_fields)  # explains and reports what is wrong there, too
            raise
        values = read_shown(self._own_fields)
        kept = {name: values[name] for name in ("model", "shapes", "alpha")}
        return {**kept, "prior": prior, "theta_grid": values["grid"], "nu_grid": values.get("nu")}

    def show(self, settings: SamplerSettings) -> None:
        """Show given settings."""
        grids = {"grid": (settings.theta_grid, default_theta_grid())}
        if settings.nu_grid is not None:
            grids["nu"] = (settings.nu_grid, default_nu_grid())
        texts = {"model": settings.model, "shapes": settings.shapes, "alpha": f"{settings.alpha:g}"}
        for name, (grid, default) in grids.items():
            is_default = grid == tuple(default.tolist())
            texts[name] = _DEFAULT_GRIDS[name] if is_default else ", ".join(map(repr, grid))
        for name, text in texts.items():
            self._own_fields[name].control.value = text
        self.prior.show(settings.prior)
        self._name_preset()
        self.arrange()


# Moves, start and seed.

_ALWAYS = {"schedule", "initial", "seed"}
_GIVEN, _DEFAULT_START = "given", "default"
_COUNTS = {"informed-split-merge": "splits", "gibbs": "sweeps"}  # fields of the default schedule's repeats


def _starts(*more: tuple[str, Any]) -> list[tuple[str, Any]]:
    return [("default", _DEFAULT_START), *((name, name) for name in INITIAL), *more]


def _single_moves() -> dict[str, tuple[str, Move]]:
    """Schedules of a single move, with titles: those that have a name, then moves that have no schedule."""
    named = {name: schedule[0].move for name, schedule in SCHEDULES.items() if len(schedule) == 1}
    scheduled = {made.move.name for schedule in SCHEDULES.values() for made in schedule}
    offered = {name: (f"{name.replace('-', ' ')}: {move.name}", move) for name, move in named.items()}
    others = {name: (kind.title, kind()) for name, kind in MOVES.items() if name not in scheduled}
    return {**offered, **others}


def _count(title: str, start: int, least: int, most: int, name: str) -> Field:
    css_class = f"ew-{name.replace('_', '-')}"
    return entry(title, str(start), whole_number(title, least, most), css_class, _TIPS[name])


class MovesPanel(VBox):
    """Fields of the schedule and its options, the start and the seed."""

    def __init__(self) -> None:
        self._given: tuple[Repeated, ...] = ()
        self._singles = _single_moves()
        self._schedules = [("default: informed + Gibbs", "default")]
        self._schedules += [(title, name) for name, (title, _) in self._singles.items()]
        # Names of the fields for a move's options, by schedule and option.
        self._fields_of: dict[str, dict[str, str]] = {}
        options: dict[str, Field] = {}
        for name, (_, move) in self._singles.items():
            keys = {option.name: option.key for option in move.choosable}
            taken = {option: f"{name}-{key}" if key in options else key for option, key in keys.items()}
            options |= {taken[option.name]: option_field(option, move) for option in move.choosable}
            self._fields_of[name] = taken
        metrics = [("as invariant as the model", "canonical"), ("raw units", "euclidean")]
        ratios = [("correct", "metropolis-hastings"), ("as printed (wrong)", "as-printed")]
        self.fields = {
            "schedule": choice("moves", self._schedules, "default", "ew-moves", _TIPS["schedule"]),
            "splits": _count("split-merges", 20, 0, 10_000, "splits"),
            "sweeps": _count("Gibbs sweeps", 1, 0, 1000, "sweeps"),
            "repeats": _count("repeats", 1, 1, 100_000, "repeats"),
            **options,
            "metric": choice("distances", metrics, "canonical", "ew-metric", _TIPS["metric"]),
            "acceptance": choice(
                "ratio", ratios, "metropolis-hastings", "ew-acceptance-rule", _TIPS["acceptance"]
            ),
            "initial": choice("start", _starts(), _DEFAULT_START, "ew-initial", _TIPS["initial"]),
            "seed": _count("seed", 0, 0, 2**53, "seed"),
        }
        super().__init__(tuple(self.fields.values()), **look("ew-moves-box"))

    def arrange(self) -> None:
        """Show the fields that apply to the schedule."""
        show_only(self.fields, _ALWAYS | self._shown(self.fields["schedule"].control.value))

    def _shown(self, kind: str) -> set[str]:
        if kind == _GIVEN:
            return set()
        if kind == "default":
            return set(_COUNTS.values())
        move = self._singles[kind][1]
        rules = {"metric"} if move.needs_distances else set()
        rules |= {"acceptance"} if move.has_printed_ratio else set()
        return {"repeats", *self._fields_of[kind].values(), *rules}

    def read(self) -> dict[str, Any]:
        """Arguments of `SamplerSettings`; a wrong value is explained next to its field, and raises."""
        values = read_shown(self.fields)
        kept = {name: value for name, value in values.items() if name in {"metric", "acceptance"}}
        # A menu takes None for no choice at all.
        initial = None if values["initial"] == _DEFAULT_START else values["initial"]
        return {"moves": self._moves(values), "initial": initial, "seed": values["seed"], **kept}

    def _moves(self, values: dict[str, Any]) -> tuple[Repeated, ...]:
        kind = values["schedule"]
        if kind == _GIVEN:
            return self._given
        if kind in self._singles:
            chosen = {option: values[key] for option, key in self._fields_of[kind].items()}
            return (Repeated(replace(self._singles[kind][1], **chosen), values["repeats"]),)
        counts = [(made.move, values[_COUNTS[made.move.name]]) for made in SCHEDULES[kind]]
        schedule = tuple(Repeated(move, repeats) for move, repeats in counts if repeats)
        if not schedule:
            problem = "Without moves the partition never changes; set split-merges or Gibbs sweeps to 1."
            self.fields["splits"].problem = problem
            raise ValueError(problem)
        return schedule

    def show(self, settings: SamplerSettings) -> None:
        """Show given settings."""
        self._given = settings.moves
        kind = self._kind(settings.moves)
        own = [("as given", _GIVEN)] if kind == _GIVEN else []
        self.fields["schedule"].control.options = self._schedules + own
        initial = _DEFAULT_START if settings.initial is None else settings.initial
        given = [] if isinstance(initial, str) else [("as given", initial)]
        self.fields["initial"].control.options = _starts(*given)
        seed = str(0 if settings.seed is None else settings.seed)
        texts: dict[str, Any] = {"schedule": kind, "initial": initial, "seed": seed}
        for name, text in {**texts, **self._option_texts(kind, settings)}.items():
            self.fields[name].control.value = text
        self.arrange()

    def _option_texts(self, kind: str, settings: SamplerSettings) -> dict[str, Any]:
        if kind == _GIVEN:
            return {}
        if kind == "default":
            counts = {made.move.name: made.repeats for made in settings.moves}
            return {field: str(counts.get(name, 0)) for name, field in _COUNTS.items()}
        first = settings.moves[0]
        texts: dict[str, Any] = {"repeats": str(first.repeats)}
        for option, key in self._fields_of[kind].items():
            value = getattr(first.move, option)
            texts[key] = value if isinstance(value, str) else f"{value:g}"
        rules = {"metric": settings.metric, "acceptance": settings.acceptance}
        return texts | {name: value for name, value in rules.items() if name in self._shown(kind)}

    def _kind(self, moves: tuple[Repeated, ...]) -> str:
        """Which of the schedules that the fields can express these are."""
        names = [made.move.name for made in moves]
        default = [made.move.name for made in SCHEDULES["default"]]
        if names == [name for name in default if name in names]:
            return "default"
        for kind, (_, move) in self._singles.items():
            chosen = {option: getattr(moves[0].move, option, None) for option in self._fields_of[kind]}
            # Options without a field must have their defaults.
            if names == [move.name] and replace(move, **chosen) == moves[0].move:
                return kind
        return _GIVEN


class SettingsPanel:
    """The panels of model and moves, and the button that restarts the chain.

    `on_change` is called after a change, on the thread of the message; `on_apply` when the user wants a new
    chain.
    """

    def __init__(
        self, settings: SamplerSettings, on_change: Callable[[], None], on_apply: Callable[[], None]
    ) -> None:
        self._on_change = on_change
        self._silence = Silence()
        self._settings = settings  # shown last
        self.model_box = ModelPanel()
        self.moves_box = Later(self._make_moves)
        self.apply = button(
            "Restart with these settings",
            "ew-apply",
            "Start a new chain with these settings; this deletes the current draws",
            on_apply,
            button_style="warning",
            layout={"display": "none"},
        )
        self.notice = note("ew-notice", is_shown=False)
        self.show(settings)
        self._observe(self.model_box.fields)

    def _make_moves(self) -> MovesPanel:
        panel = MovesPanel()
        panel.show(self._settings)
        self._observe(panel.fields)
        return panel

    def _observe(self, fields: dict[str, Field]) -> None:
        for field in fields.values():
            field.control.observe(lambda _: None if self._silence else self._on_change(), "value")

    @property
    def fields(self) -> dict[str, Field]:
        """All fields by name."""
        return {**self.model_box.fields, **self.moves_box.content.fields}

    def arrange(self) -> None:
        """Show the fields that apply."""
        with self._silence:
            self.model_box.arrange()
            if self.moves_box.is_made:
                self.moves_box.content.arrange()

    def read(self) -> SamplerSettings:
        """Return the settings, or explain next to the field what is wrong, and raise `ValueError`."""
        try:
            model = self.model_box.read()
        except ValueError:
            # What is wrong with the moves is shown too, and not one fault after the other.
            with suppress(ValueError):
                self._read_moves()
            raise
        return SamplerSettings(**model, **self._read_moves(), centre=self._settings.centre)

    def _read_moves(self) -> dict[str, Any]:
        if self.moves_box.is_made:
            return self.moves_box.content.read()
        names = ("moves", "initial", "seed", "metric", "acceptance")
        return {name: getattr(self._settings, name) for name in names}

    def show(self, settings: SamplerSettings) -> None:
        """Show given settings, without a call of `on_change`."""
        self._settings = settings
        with self._silence:
            self.model_box.show(settings)
            if self.moves_box.is_made:
                self.moves_box.content.show(settings)

    def offer(self, pending: bool) -> None:
        """Show or hide the button that restarts."""
        assign(self.apply, disabled=False)
        show_if(self.apply, pending)

    def blame(self, problem: str) -> None:
        """Explain next to its field what a sampler refused; an empty text removes the explanation."""
        is_start = "initial=" in problem or problem.startswith("initial ")
        self.model_box.fields["model"].problem = "" if is_start else problem
        if is_start or self.moves_box.is_made:
            self.moves_box.content.fields["initial"].problem = problem if is_start else ""

    def say(self, notice: str) -> None:
        """Show the warnings of the sampler."""
        assign(self.notice, value=escape(notice))
        show_if(self.notice, bool(notice))


_MOST_ITERATIONS = 10_000_000


class RunPanel(VBox):
    """Fields of iterations and burn-in, which change a running chain without a restart.

    `on_change` is called after a change, on the thread of the message.
    """

    def __init__(self, iterations: int, burn_in: int, on_change: Callable[[], None]) -> None:
        self.iterations = _count("iterations", iterations, 1, _MOST_ITERATIONS, "iterations")
        self.burn_in = _count("burn-in", burn_in, 0, _MOST_ITERATIONS, "burn_in")
        super().__init__((self.iterations, self.burn_in), **look())
        self._silence = Silence()
        for field in (self.iterations, self.burn_in):
            field.control.observe(lambda _: None if self._silence else on_change(), "value")

    def read(self) -> tuple[int, int]:
        """Iterations and burn-in; what is wrong is explained next to the field, and raises `ValueError`."""
        iterations, burn_in = self.iterations.read(), self.burn_in.read()
        if burn_in >= iterations:
            self.burn_in.problem = f"burn-in must be below the {iterations} iterations; got {burn_in}."
            raise ValueError(self.burn_in.problem)
        return iterations, burn_in

    def show(self, iterations: int, burn_in: int) -> None:
        """Show given values, without a call of `on_change`."""
        with self._silence:
            self.iterations.control.value = str(iterations)
            self.burn_in.control.value = str(burn_in)
