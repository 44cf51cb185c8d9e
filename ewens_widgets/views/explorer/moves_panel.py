"""Controls of the moves, the start and the seed.

Offered are the named schedules, and every registered move that none of them has; a move's name, its options
and what they are called come from the move itself.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ipywidgets import VBox

from ewens_widgets.sampling.moves.move import MOVES, Move
from ewens_widgets.sampling.moves.schedule import SCHEDULES, Repeated
from ewens_widgets.sampling.state import INITIAL
from ewens_widgets.views.fields import (
    Field,
    choice,
    entry,
    option_field,
    read_shown,
    show_only,
    whole_number,
)

if TYPE_CHECKING:
    from ewens_widgets.views.explorer.settings import SamplerSettings

__all__ = ["MovesPanel"]

_GIVEN = "given"
_USUAL = "usual"
_ALWAYS = {"schedule", "initial", "seed"}
# The default schedule: how often each of its moves is made.
_COUNTS = {"informed-split-merge": "splits", "gibbs": "sweeps"}


def _starts(*more: tuple[str, Any]) -> list[tuple[str, Any]]:
    return [("as usual", _USUAL), *((name, name) for name in INITIAL), *more]


def _single_moves() -> dict[str, tuple[str, Move]]:
    """Schedules of a single move, with titles: those that have a name, then moves that have no schedule."""
    named = {name: schedule[0].move for name, schedule in SCHEDULES.items() if len(schedule) == 1}
    scheduled = {made.move.name for schedule in SCHEDULES.values() for made in schedule}
    offered = {name: (f"{name.replace('-', ' ')}: {move.name}", move) for name, move in named.items()}
    others = {name: (kind.title, kind()) for name, kind in MOVES.items() if name not in scheduled}
    return {**offered, **others}


def _make_fields(schedules: list[tuple[str, str]], options: dict[str, Field]) -> dict[str, Field]:
    return {
        "schedule": choice("moves", schedules, "default", "ew-moves", "Which moves an iteration makes"),
        "splits": entry(
            "split-merges",
            "20",
            whole_number("split-merges", 0, 10_000),
            "ew-splits",
            "Informed split-merge proposals an iteration",
        ),
        "sweeps": entry(
            "Gibbs sweeps",
            "1",
            whole_number("Gibbs sweeps", 0, 1000),
            "ew-sweeps",
            "Gibbs sweeps an iteration",
        ),
        "repeats": entry(
            "repeats",
            "1",
            whole_number("repeats", 1, 100_000),
            "ew-repeats",
            "How often the move is made an iteration",
        ),
        **options,
        **_rule_fields(),
        "initial": choice(
            "start",
            _starts(),
            _USUAL,
            "ew-initial",
            "Partition that the chain starts from; usually singletons, as in the paper, and one cluster "
            "where shapes are own or the prior is not Ewens'",
        ),
        "seed": entry(
            "seed", "0", whole_number("seed", 0), "ew-seed", "The same seed and settings give the same chain"
        ),
    }


def _rule_fields() -> dict[str, Field]:
    return {
        "metric": choice(
            "distances",
            [("as invariant as the model", "canonical"), ("raw units", "euclidean")],
            "canonical",
            "ew-metric",
            "Distances that the split-merge move uses",
        ),
        "acceptance": choice(
            "ratio",
            [("correct", "metropolis-hastings"), ("as printed (wrong)", "as-printed")],
            "metropolis-hastings",
            "ew-acceptance-rule",
            "The paper prints the acceptance ratio upside down; for teaching",
        ),
    }


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
        self.fields = _make_fields(self._schedules, options)
        super().__init__(tuple(self.fields.values()))

    def arrange(self) -> None:
        """Show the fields that matter for the schedule."""
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
        """Arguments of `SamplerSettings`; a wrong value is explained beside its field, and raises."""
        values = read_shown(self.fields)
        kept = {name: value for name, value in values.items() if name in {"metric", "acceptance"}}
        # A menu takes None for no choice at all.
        initial = None if values["initial"] == _USUAL else values["initial"]
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
            problem = "Without any move the partition would never change; make one of them positive."
            self.fields["splits"].problem = problem
            raise ValueError(problem)
        return schedule

    def show(self, settings: "SamplerSettings") -> None:
        """Show given settings."""
        self._given = settings.moves
        kind = self._kind(settings.moves)
        self.fields["schedule"].control.options = self._schedules + (
            [("as given", _GIVEN)] if kind == _GIVEN else []
        )
        initial = _USUAL if settings.initial is None else settings.initial
        given = [] if isinstance(initial, str) else [("as given", initial)]
        self.fields["initial"].control.options = _starts(*given)
        texts: dict[str, Any] = {"schedule": kind, "initial": initial}
        texts["seed"] = str(0 if settings.seed is None else settings.seed)
        texts |= self._option_texts(kind, settings)
        for name, text in texts.items():
            self.fields[name].control.value = text
        self.arrange()

    def _option_texts(self, kind: str, settings: "SamplerSettings") -> dict[str, Any]:
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
        usual = [made.move.name for made in SCHEDULES["default"]]
        if names == [name for name in usual if name in names]:
            return "default"
        for kind, (_, move) in self._singles.items():
            chosen = {option: getattr(moves[0].move, option, None) for option in self._fields_of[kind]}
            # Options without a field must be as usual.
            if names == [move.name] and replace(move, **chosen) == moves[0].move:
                return kind
        return _GIVEN
