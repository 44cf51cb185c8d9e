"""Schedules: which moves an iteration makes, in which order, and how often each."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ewens_widgets.arguments import check_count
from ewens_widgets.sampling.moves.gibbs import Gibbs
from ewens_widgets.sampling.moves.informed import InformedSplitMerge
from ewens_widgets.sampling.moves.move import MOVES, Move

MOST_REPEATS = 10**9  # An iteration can only be interrupted at its end.


@dataclass(frozen=True)
class Repeated:
    """A move with the number of times that it is made in an iteration."""

    move: Move
    repeats: int = 1

    def __post_init__(self) -> None:
        """Refuse what is not a move, and repeats that are not a count."""
        move: object = self.move
        if not isinstance(move, Move):
            raise TypeError(f"{move!r} is not a move; the moves are {', '.join(MOVES)}.")
        if MOVES.get(move.name) is not type(move):
            raise TypeError(
                f"{move!r} is of a kind that is not registered; pass the class {type(move).__name__} to "
                f"ewens_widgets.moves.register first. The moves are {', '.join(MOVES)}."
            )
        name = f"the repeats of {self.move.name}"
        repeats = check_count(name, self.repeats, 1)
        if repeats > MOST_REPEATS:
            raise ValueError(f"{name} must not exceed {MOST_REPEATS}; got {repeats}.")
        object.__setattr__(self, "repeats", repeats)


SCHEDULES: dict[str, tuple[Repeated, ...]] = {
    "paper-1": (Repeated(MOVES["reassign"]()),),
    "paper-2": (Repeated(MOVES["split-merge"]()),),
    "default": (Repeated(InformedSplitMerge(), 20), Repeated(Gibbs())),
}
# With own shapes ν and Σ follow the partition slowly: more sweeps between their draws are worth their time.
_DEFAULT_OWN = (Repeated(InformedSplitMerge(), 20), Repeated(Gibbs(), 3))


def resolve_schedule(moves: str | Sequence[Any], shapes: str = "common") -> tuple[Repeated, ...]:
    """Turn the name of a schedule, or a list of moves, into moves with repeats.

    Parameters
    ----------
    moves
        ``"paper-1"``, ``"paper-2"`` or ``"default"``; or a list whose entries are moves, names of moves, or
        pairs of either with a number of repeats.
    shapes
        ``"common"`` or ``"own"``; the default schedule has three Gibbs sweeps for own shapes, and one else.
    """
    if isinstance(moves, str):
        if moves not in SCHEDULES:
            raise ValueError(
                f"there is no schedule {moves!r}; use one of {', '.join(SCHEDULES)}, or a list of moves "
                f"({', '.join(MOVES)})."
            )
        return _DEFAULT_OWN if (moves, shapes) == ("default", "own") else SCHEDULES[moves]
    if not isinstance(moves, Sequence):
        raise TypeError(f"moves must be the name of a schedule or a list of moves; got {moves!r}.")
    schedule = tuple(_repeated(entry) for entry in moves)
    if not schedule:
        raise ValueError("the schedule is empty: without a move the partition would never change.")
    return schedule


def _repeated(entry: Any) -> Repeated:  # noqa: ANN401 - what a user wrote
    if isinstance(entry, Repeated):
        return entry
    move, repeats = entry if isinstance(entry, tuple | list) and len(entry) == 2 else (entry, 1)
    if isinstance(move, str):
        move = move_kind(move)()
    return Repeated(move, repeats)


def move_kind(name: str) -> type[Move]:
    """The kind of move that is registered under a name."""
    if name not in MOVES:
        raise ValueError(f"there is no move {name!r}; the moves are {', '.join(MOVES)}.")
    return MOVES[name]


def to_plain(schedule: Sequence[Repeated]) -> list[dict[str, Any]]:
    """Describe a schedule in plain types, for a file."""
    return [{"name": entry.move.name, "repeats": entry.repeats, **asdict(entry.move)} for entry in schedule]


def from_plain(described: Sequence[dict[str, Any]]) -> tuple[Repeated, ...]:
    """Make a schedule from its description."""
    schedule = []
    for entry in described:
        options: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()
        }
        name, repeats = options.pop("name"), options.pop("repeats")
        schedule.append(Repeated(move_kind(name)(**options), repeats))
    return tuple(schedule)
