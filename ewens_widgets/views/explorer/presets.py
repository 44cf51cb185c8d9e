"""The state of an explorer as a short text, and some that are worth showing to a class.

A text such as ``data=moons&model=II&seed=0&cut=2`` says which data, which settings and what to look at; what
it leaves out is as usual. It is the query of the web page's address and the argument of
`Explorer.from_preset`; `Explorer.python` writes the same as code. Data of one's own have no short name.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, urlencode

import numpy as np

from ewens_widgets.arguments import check_count
from ewens_widgets.datasets import LOADERS, Dataset
from ewens_widgets.model.priors import FiniteMixture, PartitionPrior
from ewens_widgets.views.stage import COLOURINGS, TREE_KINDS
from ewens_widgets.views.transport import RISING, Speed

__all__ = ["DATA", "PRESETS", "Preset", "Shown", "parse_state", "short_name", "state_text"]


def _one_gaussian() -> Dataset:
    """Draw a single cluster: whatever is found in it was invented."""
    X = np.random.default_rng(0).normal(size=(150, 2))
    return Dataset(
        X=X,
        labels=np.zeros(len(X), dtype=np.intp),
        name="one Gaussian",
        feature_names=("x", "y"),
        description="150 points of one Gaussian, drawn at random: there is one cluster, and no more.",
        same_units=True,
        noun="point",
    )


DATA: dict[str, Callable[[], Dataset]] = {
    "square": LOADERS["unit square"],
    "sheared": LOADERS["unit square, sheared"],
    "moons": LOADERS["half-moons"],
    "wine": LOADERS["wine"],
    "leukemia": LOADERS["leukemia"],
    "roads": LOADERS["Denmark roads (stand-in)"],
    "gaussian": _one_gaussian,
}
"""Short names of data sets."""


def short_name(dataset: Dataset) -> str | None:
    """Short name of a data set, or None where it is not one of those."""
    for name, load in DATA.items():
        if _name_of(name) == dataset.name and np.array_equal(load().X, dataset.X):
            return name
    return None


@cache
def _name_of(name: str) -> str:
    return DATA[name]().name


@dataclass(frozen=True)
class Shown:
    """What an explorer shows of its chain.

    Attributes
    ----------
    colours
        What the colours stand for; one of `COLOURINGS`.
    tree
        Method of the tree; one of the values of `TREE_KINDS`.
    cut, height, least
        Where it is cut: into so many clusters of at least so many members, or at a height.
    x, y
        What the axes of the scatter show, by name; None for what they show at first.
    heatmap
        Name of the heatmap's colours.
    numbers
        Number of each object's colour: the same clusters may have been coloured otherwise.
    ringed
        Whether the objects that the last iteration moved are ringed.
    ellipses
        Whether clusters have ellipses around them.
    """

    colours: str = "draw"
    tree: str = "single"
    cut: int | None = None
    height: float | None = None
    least: int = 1
    x: str | None = None
    y: str | None = None
    heatmap: str | None = None
    numbers: tuple[int, ...] = ()
    ringed: bool = False
    ellipses: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be shown."""
        if self.colours not in COLOURINGS:
            raise ValueError(f"colours must be one of {', '.join(COLOURINGS)}; got {self.colours!r}")
        if self.tree not in TREE_KINDS.values():
            raise ValueError(f"tree must be one of {', '.join(TREE_KINDS.values())}; got {self.tree!r}")
        check_count("least", self.least, 1)
        if self.cut is not None:
            check_count("cut", self.cut, 1)
        if self.height is not None and not 0.0 <= self.height < float("inf"):
            raise ValueError(f"the height of a cut must not be negative; got {self.height!r}")

    @classmethod
    def of_plain(cls, given: Any) -> "Shown":  # noqa: ANN401 - from a file
        """Read what `plain` wrote; what is missing is as usual, and what cannot be shown raises."""
        if not isinstance(given, dict):
            return cls()
        names = {name: given[name] for name in cls.__dataclass_fields__ if given.get(name) is not None}
        for name, kind in {
            "colours": str,
            "tree": str,
            "x": str,
            "y": str,
            "heatmap": str,
            "least": int,
            "ringed": bool,
            "ellipses": bool,
        }.items():
            if name in names and not isinstance(names[name], kind):
                raise ValueError(f"{name} of what it shows is no {kind.__name__}")
        names["numbers"] = tuple(int(number) for number in names.get("numbers", ()))
        return cls(**names)

    def plain(self) -> dict[str, Any]:
        """What it is in a file."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class Preset:
    """Something worth showing.

    Attributes
    ----------
    state
        The state as a text.
    sentence
        What to look for.
    """

    state: str
    sentence: str


PRESETS: dict[str, Preset] = {
    "four corners": Preset(
        "data=square&model=I", "Four clusters at the corners of a square. How soon does the chain find them?"
    ),
    "units matter": Preset(
        "data=sheared&model=III",
        "The same square, stretched and sheared: model III does not mind. Try I and II.",
    ),
    "wrong model": Preset(
        "data=sheared&model=I",
        "Model I takes one scale for all directions; these clusters are long and thin.",
    ),
    "the moons": Preset(
        "data=moons&model=II&cut=2&colours=cut",
        "No Gaussian is bent. Draws need a dozen clusters; the tree, cut in two, shows the moons.",
    ),
    "the printed ratio is wrong": Preset(
        "data=square&model=I&moves=paper-2&ratio=as-printed&speed=20",
        "With the acceptance ratio as it is printed the chain never leaves its start.",
    ),
    "stuck chain": Preset(
        "data=square&model=I&moves=paper-2&speed=20",
        "The paper's split-merge moves alone: right, but very slow. Compare with the default moves.",
    ),
    "one Gaussian": Preset(
        "data=gaussian&model=II", "There is one cluster. How many does the prior invent? Try λ = 0.1 and 10."
    ),
    "wine": Preset(
        "data=wine&model=III&shapes=own&prior=finite&iterations=4000",
        "178 wines, 13 measurements, three kinds. The chain is not told.",
    ),
}
"""States for a lecture, by name."""


def _speed(text: str) -> Speed:
    return None if text == "fast" else text if text == RISING else float(text)


_PRIORS = {"finite": FiniteMixture()}  # those that have a short name


def _prior(text: str) -> PartitionPrior:
    if text not in _PRIORS:
        raise ValueError(f"prior must be one of {', '.join(_PRIORS)}; got {text!r}")
    return _PRIORS[text]


_ARGUMENTS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "data": ("data", str),
    "model": ("model", str),
    "moves": ("moves", str),
    "start": ("initial", str),
    "ratio": ("acceptance", str),
    "lambda": ("concentration", float),
    "shapes": ("shapes", str),
    "prior": ("prior", _prior),
    "alpha": ("alpha", float),
    "seed": ("seed", int),
    "iterations": ("iterations", int),
    "burn_in": ("burn_in", int),
    "speed": ("speed", _speed),
}
_SHOWN: dict[str, Callable[[str], Any]] = {
    "colours": str,
    "tree": str,
    "cut": int,
    "height": float,
    "least": int,
    "x": str,
    "y": str,
}


def parse_state(text: str) -> tuple[dict[str, Any], Shown]:
    """Arguments of an explorer, and what it shows, from a short text or the name of a preset.

    Parameters
    ----------
    text
        Like ``"data=moons&model=II&seed=0&cut=2"``, with or without a question mark before it. A speed is in
        iterations a frame, ``rising`` or ``fast``.

    Raises
    ------
    ValueError
        For what it cannot say; the message names what it can.
    """
    state = PRESETS[text].state if text in PRESETS else text.strip().removeprefix("?")
    if state and "=" not in state:
        raise ValueError(f"there is no preset {text!r}; use one of {', '.join(PRESETS)}")
    arguments: dict[str, Any] = {}
    shown: dict[str, Any] = {}
    for key, value in parse_qsl(state, keep_blank_values=True):
        if key in _SHOWN:
            shown[key] = _value(key, value, _SHOWN[key])
        elif key in _ARGUMENTS:
            name, parse = _ARGUMENTS[key]
            arguments[name] = _value(key, value, parse)
        else:
            raise ValueError(f"a state knows {', '.join([*_ARGUMENTS, *_SHOWN])}; got {key!r}")
    if "data" in arguments:
        name = arguments["data"]
        if name not in DATA:
            raise ValueError(f"data must be one of {', '.join(DATA)}; got {name!r}")
        arguments["data"] = DATA[name]()
    if "cut" in shown or "height" in shown:
        shown.setdefault("colours", "cut")
    return arguments, Shown(**shown)


def _value(key: str, text: str, parse: Callable[[str], Any]) -> Any:  # noqa: ANN401 - of any type
    try:
        return parse(text)
    except ValueError as error:
        raise ValueError(f"{key} must be a number; got {text!r}") from error


def state_text(arguments: dict[str, Any], shown: Shown) -> str:
    """The short text of what is not as usual; what has no short form is left out."""
    parts: dict[str, Any] = {}
    for key, (name, _) in _ARGUMENTS.items():
        value = arguments.get(name)
        if isinstance(value, str | int | float):
            parts[key] = f"{value:g}" if isinstance(value, float) else value
        elif value in _PRIORS.values():
            parts[key] = next(short for short, prior in _PRIORS.items() if prior == value)
    usual = Shown()
    for key in _SHOWN:
        if getattr(shown, key) not in (None, getattr(usual, key)):
            parts[key] = getattr(shown, key)
    return urlencode(parts)
