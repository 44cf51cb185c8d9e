"""Controls of the moves, the start and the seed."""

from typing import TYPE_CHECKING, Any

from ipywidgets import VBox

from ewens_widgets.sampling.moves.gibbs import Gibbs
from ewens_widgets.sampling.moves.informed import InformedSplitMerge
from ewens_widgets.sampling.moves.reassign import Reassign
from ewens_widgets.sampling.moves.schedule import Repeated
from ewens_widgets.sampling.moves.split_merge import SplitMerge
from ewens_widgets.sampling.state import INITIAL
from ewens_widgets.views.fields import Field, choice, entry, parse_share, read_shown, show_only, whole_number

if TYPE_CHECKING:
    from ewens_widgets.views.explorer.settings import Settings

__all__ = ["MovesPanel"]

_SCHEDULES = [
    ("default: informed + Gibbs", "default"),
    ("paper 1: reassign", "paper-1"),
    ("paper 2: split-merge", "paper-2"),
]
_GIVEN = "given"
_FIELDS_OF = {
    "default": {"splits", "sweeps"},
    "paper-1": {"repeats"},
    "paper-2": {"repeats", "within", "between", "jump", "metric", "acceptance"},
    _GIVEN: set(),
}
_ALWAYS = {"schedule", "initial", "seed"}


def _options(*names: str) -> list[tuple[str, Any]]:
    return [(name, name) for name in names]


def _make_fields() -> dict[str, Field]:
    return {
        "schedule": choice("moves", _SCHEDULES, "default", "ew-moves", "Which moves an iteration makes"),
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
        **_split_merge_fields(),
        "initial": choice(
            "start", _options(*INITIAL), "singletons", "ew-initial", "Partition that the chain starts from"
        ),
        "seed": entry(
            "seed", "0", whole_number("seed", 0), "ew-seed", "The same seed and settings give the same chain"
        ),
    }


def _split_merge_fields() -> dict[str, Field]:
    return {
        "within": choice(
            "within",
            _options("average", "maximum", "minimum"),
            "average",
            "ew-within",
            "Distance within a cluster: wide clusters are split",
        ),
        "between": choice(
            "between",
            _options("average", "maximum", "minimum", "hausdorff"),
            "average",
            "ew-between",
            "Distance between clusters: near clusters are merged",
        ),
        "jump": entry(
            "core jump",
            "0.01",
            parse_share("core jump"),
            "ew-jump",
            "Probability that a core of a split changes sides",
        ),
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
        self.fields = _make_fields()
        super().__init__(tuple(self.fields.values()))

    def arrange(self) -> None:
        """Show the fields that matter for the schedule."""
        show_only(self.fields, _ALWAYS | _FIELDS_OF[self.fields["schedule"].control.value])

    def read(self) -> dict[str, Any]:
        """Arguments of `Settings`; a wrong value is explained beside its field, and raises `ValueError`."""
        values = read_shown(self.fields)
        kept = {name: value for name, value in values.items() if name in {"metric", "acceptance"}}
        return {"moves": self._moves(values), "initial": values["initial"], "seed": values["seed"], **kept}

    def _moves(self, values: dict[str, Any]) -> tuple[Repeated, ...]:
        kind = values["schedule"]
        if kind == _GIVEN:
            return self._given
        if kind == "paper-1":
            return (Repeated(Reassign(), values["repeats"]),)
        if kind == "paper-2":
            move = SplitMerge(values["within"], values["between"], core_jump=values["jump"])
            return (Repeated(move, values["repeats"]),)
        parts = ((InformedSplitMerge(), values["splits"]), (Gibbs(), values["sweeps"]))
        schedule = tuple(Repeated(move, repeats) for move, repeats in parts if repeats)
        if not schedule:
            problem = "Without any move the partition would never change; make one of them positive."
            self.fields["splits"].problem = problem
            raise ValueError(problem)
        return schedule

    def show(self, settings: "Settings") -> None:
        """Show given settings."""
        self._given = settings.moves
        kind = _kind(settings.moves)
        self.fields["schedule"].control.options = _SCHEDULES + (
            [("as given", _GIVEN)] if kind == _GIVEN else []
        )
        given = [] if isinstance(settings.initial, str) else [("as given", settings.initial)]
        self.fields["initial"].control.options = _options(*INITIAL) + given
        texts: dict[str, Any] = {"schedule": kind, "initial": settings.initial}
        texts["seed"] = str(0 if settings.seed is None else settings.seed)
        texts |= self._option_texts(kind, settings)
        for name, text in texts.items():
            self.fields[name].control.value = text
        self.arrange()

    @staticmethod
    def _option_texts(kind: str, settings: "Settings") -> dict[str, Any]:
        first = settings.moves[0]
        if kind == "default":
            counts = {entry.move.name: entry.repeats for entry in settings.moves}
            splits, sweeps = counts.get("informed-split-merge", 0), counts.get("gibbs", 0)
            return {"splits": str(splits), "sweeps": str(sweeps)}
        if kind == "paper-1":
            return {"repeats": str(first.repeats)}
        if isinstance(first.move, SplitMerge) and kind == "paper-2":
            return {
                "repeats": str(first.repeats),
                "within": first.move.within,
                "between": first.move.between,
                "jump": f"{first.move.core_jump:g}",
                "metric": settings.metric,
                "acceptance": settings.acceptance,
            }
        return {}


def _kind(moves: tuple[Repeated, ...]) -> str:
    """Which of the schedules that the fields can express these are."""
    names = [entry.move.name for entry in moves]
    if names in (["informed-split-merge", "gibbs"], ["gibbs"], ["informed-split-merge"]):
        return "default"
    if names == ["reassign"]:
        return "paper-1"
    move = moves[0].move
    usual = SplitMerge().probabilities
    if names == ["split-merge"] and isinstance(move, SplitMerge) and move.probabilities == usual:
        return "paper-2"
    return _GIVEN
