"""The state of an explorer as a short text, examples for a lecture, and a guided tour.

A text such as ``data=moons&model=II&seed=0&cut=2`` defines data, settings and display; the rest has its
default. It is the query of the web page's address and the argument of
`Explorer.from_preset`; `Explorer.python` writes the same as code. Data from a file have no short name.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

import numpy as np
from ipywidgets import HBox, Widget

from ewens_widgets.arguments import check_count
from ewens_widgets.datasets import LOADERS, Dataset
from ewens_widgets.model.priors import FiniteMixture, PartitionPrior
from ewens_widgets.paper.moves.split_merge import SplitMerge
from ewens_widgets.sampling.moves.schedule import resolve_schedule
from ewens_widgets.views.base import assign, button, look, note, show_if
from ewens_widgets.views.shared_state import COLOURINGS, TREE_KINDS, Cut
from ewens_widgets.views.transport import RISING, Speed

if TYPE_CHECKING:
    from ewens_widgets.views.explorer.explorer import Explorer


def _one_gaussian() -> Dataset:
    """Draw points of a single Gaussian: more than one cluster would be an error."""
    X = np.random.default_rng(0).normal(size=(150, 2))
    return Dataset(
        X=X,
        labels=np.zeros(len(X), dtype=np.intp),
        name="one Gaussian",
        feature_names=("x", "y"),
        description="150 points drawn from one Gaussian: there is a single cluster.",
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
    """Short name of a data set, or None for other data."""
    for name, load in DATA.items():
        if _name_of(name) == dataset.name and np.array_equal(load().X, dataset.X):
            return name
    return None


@cache
def _name_of(name: str) -> str:
    return DATA[name]().name


@dataclass(frozen=True)
class Shown:
    """How an Explorer shows its chain."""

    colours: str = "draw"  # one of `COLOURINGS`
    tree: str = "single"  # one of the values of `TREE_KINDS`
    cut: int | None = None  # number of clusters into which the tree is cut
    height: float | None = None  # or where
    least: int = 1  # members of a cluster of the cut
    x: str | None = None  # name of what the scatter shows; None: what it shows at first
    y: str | None = None
    heatmap: str | None = None  # name of its colours
    numbers: tuple[int, ...] = ()  # of the objects' colours: equal clusters may have had other colours
    ringed: bool = False  # whether the objects that the last iteration moved are ringed
    ellipses: bool = False

    def __post_init__(self) -> None:
        """Refuse values that cannot be shown."""
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
        """Read what `plain` wrote; what is missing has its default, and what cannot be shown raises."""
        if not isinstance(given, dict):
            return cls()
        named = {name: given[name] for name in cls.__dataclass_fields__ if given.get(name) is not None}
        kinds = {str: "colours tree x y heatmap", int: "least", bool: "ringed ellipses"}
        for kind, names in kinds.items():
            wrong = [name for name in names.split() if not isinstance(named.get(name, kind()), kind)]
            if wrong:
                raise ValueError(
                    f"{wrong[0]} of the display must be a {kind.__name__}; got {named[wrong[0]]!r}"
                )
        named["numbers"] = tuple(int(number) for number in named.get("numbers", ()))
        return cls(**named)

    def plain(self) -> dict[str, Any]:
        """What it is in a file."""
        return asdict(self)


class Preset(NamedTuple):
    """An example: the state as a text, and a sentence on what to look for."""

    state: str
    sentence: str


PRESETS: dict[str, Preset] = {
    "four corners": Preset(
        "data=square&model=I",
        "Four clusters at the corners of a square. After how many iterations does the chain find them?",
    ),
    "units matter": Preset(
        "data=sheared&model=III",
        "The same square, stretched and sheared. Model III is invariant to linear maps; compare I and II.",
    ),
    "wrong model": Preset(
        "data=sheared&model=I",
        "Model I assumes one scale for all directions, but these clusters are long and thin.",
    ),
    "the moons": Preset(
        "data=moons&model=II&cut=2&colours=cut",
        "A Gaussian is not bent, so a draw needs a dozen clusters. The tree, cut in two, shows the moons.",
    ),
    "the printed ratio is wrong": Preset(
        "data=square&model=I&moves=paper-2&ratio=as-printed&speed=20",
        "With the inverted acceptance ratio of arXiv 1611.09890, and as many splits as merges proposed, the "
        "chain stays at its start.",
    ),
    "as the authors may have seen it": Preset(
        "data=moons&model=II&moves=paper-moons&metric=euclidean&ratio=as-printed&seed=7&iterations=1610"
        "&burn_in=610&cut=2&least=10",
        "The paper's own settings and inverted ratio: nearly all proposals are merges, and few clusters are "
        "left. The error is the reported one, 0.115; other seeds end in one cluster. Correct the ratio!",
    ),
    "stuck chain": Preset(
        "data=square&model=I&moves=paper-2&speed=20",
        "The paper's split-merge moves alone are correct but slow. Compare them with the default moves.",
    ),
    "one Gaussian": Preset(
        "data=gaussian&model=II",
        "There is one cluster. How many does each draw have? Compare λ = 0.1 with λ = 10.",
    ),
    "wine": Preset(
        "data=wine&model=III&shapes=own&prior=finite&iterations=4000",
        "178 wines of three kinds with 13 measurements each. The sampler does not use the kinds.",
    ),
}
"""Examples for a lecture, by name."""


def _speed(text: str) -> Speed:
    return None if text == "fast" else text if text == RISING else float(text)


# Those that have a short name; the moves are the ones that the paper uses for the half-moons.
_PRIORS = {"finite": FiniteMixture()}
PAPER_SCHEDULES = {
    "paper-moons": resolve_schedule([SplitMerge("minimum", "average", (0.019, 0.98, 0.001))]),
}


def _prior(text: str) -> PartitionPrior:
    if text not in _PRIORS:
        raise ValueError(f"prior must be one of {', '.join(_PRIORS)}; got {text!r}")
    return _PRIORS[text]


_ARGUMENTS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "data": ("data", str),
    "model": ("model", str),
    "moves": ("moves", lambda text: PAPER_SCHEDULES.get(text, text)),
    "metric": ("metric", str),
    "start": ("initial", str),
    "ratio": ("acceptance", str),
    "centre": ("centre", str),
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
        iterations per frame, ``rising`` or ``fast``.

    Raises
    ------
    ValueError
        For an unknown key or a wrong value; the message names what is known.
    """
    state = PRESETS[text].state if text in PRESETS else text.strip().removeprefix("?")
    if state and "=" not in state:
        raise ValueError(f"there is no example {text!r}; use one of {', '.join(PRESETS)}")
    arguments: dict[str, Any] = {}
    shown: dict[str, Any] = {}
    for key, value in parse_qsl(state, keep_blank_values=True):
        if key in _SHOWN:
            shown[key] = _value(key, value, _SHOWN[key])
        elif key in _ARGUMENTS:
            name, parse = _ARGUMENTS[key]
            arguments[name] = _value(key, value, parse)
        else:
            raise ValueError(f"a state may have {', '.join([*_ARGUMENTS, *_SHOWN])}; got {key!r}")
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
    """The short text of what differs from the defaults; what has no short form is left out."""
    parts: dict[str, Any] = {}
    for key, (name, _) in _ARGUMENTS.items():
        value = arguments.get(name)
        if isinstance(value, str | int | float):
            parts[key] = f"{value:g}" if isinstance(value, float) else value
        elif value in _PRIORS.values():
            parts[key] = next(short for short, prior in _PRIORS.items() if prior == value)
    default = Shown()
    for key in _SHOWN:
        if getattr(shown, key) not in (None, getattr(default, key)):
            parts[key] = getattr(shown, key)
    if {"cut", "height"} & parts.keys():
        parts.setdefault("colours", shown.colours)  # a cut alone is a cut that is shown
    return urlencode(parts)


# The guided tour: each caption has a state of the Explorer, and the part of the page that it is about.
# Everything else is dimmed. Leaving the tour brings back what was there before.


class Stop(NamedTuple):
    """A caption, the class of the part that it points at, and what brings the Explorer into its state."""

    caption: str
    part: str
    act: "Callable[[Explorer], None]"


def _begin(explorer: "Explorer") -> None:
    # Single linkage would split off one point and merge two corners; the tree shows four groups.
    explorer.use_preset("data=square&model=III&iterations=800&burn_in=200&tree=average")
    explorer.pictures_shown.value = False
    explorer.player.step()


def _shear(explorer: "Explorer") -> None:
    explorer.transform.buttons["Shear"].click()
    explorer.transport.choose_speed(1 / 10)
    explorer.player.play()


def _run(explorer: "Explorer") -> None:
    explorer.transform.reset()
    explorer.transport.choose_speed(5.0)
    explorer.player.run_to_end()


def _show_theta(explorer: "Explorer") -> None:
    explorer.pictures_shown.value = True


def _show_answer(explorer: "Explorer") -> None:
    explorer.pictures_shown.value = False
    explorer.shared.set_colouring("answer")


STOPS = (
    Stop(
        "Partition: 80 points drawn around the four corners of a square. The sampler is given neither the "
        "groups nor their number. One iteration gives one draw, a partition of the points. Rings mark points "
        "that changed their cluster.",
        "ew-partition",
        _begin,
    ),
    Stop(
        "Invariance: the data are sheared while the chain goes on. Model III gives the same result, draw by "
        "draw. Models I and II and k-means depend on the coordinates. Press Rotate or Dice, and read the "
        "badges.",
        "ew-transform",
        _shear,
    ),
    Stop(
        "λ, the concentration of the prior: the larger it is, the more clusters a partition has before any "
        "data. The dashed line of the histogram is this prior.",
        "ew-prior-chooser",
        lambda explorer: explorer.transform.reset(),
    ),
    Stop(
        "θ, the variance between clusters divided by the variance within them, is sampled too. Blue bars are "
        "its posterior: the clusters lie several standard deviations apart.",
        "ew-theta",
        _show_theta,
    ),
    Stop(
        "Similarity: every row and column is a point, and dark pairs are in one cluster in most draws. The "
        "chain runs to its end, and the blocks on the diagonal are the groups.",
        "ew-heatmap",
        _run,
    ),
    Stop(
        "How many: blue bars count the Gaussian components of each draw, orange ones the groups of the "
        "answer, which merges components that the draws cannot separate.",
        "ew-counts",
        lambda explorer: explorer.shared.set_cut(Cut(n_clusters=4), show=False),
    ),
    Stop(
        "The answer, in one sentence: the groups, how many points are assigned with probability 0.8 or more, "
        "and whether the chain supports it. Next, choose an example, or upload a table of your own.",
        "ew-headline-row",
        _show_answer,
    ),
)
"""The tour."""


class Tour(HBox):
    """Captions one after the other; its widgets are made when it begins."""

    children: tuple[Widget, ...]

    def __init__(self, explorer: "Explorer") -> None:
        self._explorer = explorer
        self._place = -1
        self._restore: Callable[[], None] = lambda: None
        super().__init__((), **look("ew-tour", display="none"))

    @property
    def place(self) -> int:
        """Place of the caption on display, from 0; −1 without a tour."""
        return self._place

    def begin(self) -> None:
        """Show the first caption."""
        if self._place >= 0:
            return
        if not self.children:
            post = self._explorer.post
            self.caption = note("ew-tour-caption")
            self.buttons = {
                "Next": button("Next", "ew-tour-next", "Next caption (Enter)", lambda: post(self.next)),
                "Close": button(
                    "Close",
                    "ew-tour-close",
                    "Leave the tour (Esc); your chain comes back",
                    lambda: post(self.leave),
                ),
            }
            assign(self.buttons["Next"], button_style="primary")
            self.children = (self.caption, *self.buttons.values())
        self._restore = self._explorer.remember()
        show_if(self, True)
        self.next()
        self.buttons["Next"].focus()

    def next(self) -> None:
        """Show the next caption; after the last one, leave the tour."""
        if self._place + 1 == len(STOPS):
            self.leave()
            return
        self._point_at("")
        self._place += 1
        stop = STOPS[self._place]
        stop.act(self._explorer)
        self._point_at(stop.part)
        last = self._place + 1 == len(STOPS)
        assign(self.buttons["Next"], description="End" if last else "Next")
        assign(self.caption, value=escape(f"{self._place + 1} of {len(STOPS)} · {stop.caption}"))

    def _point_at(self, part: str) -> None:
        """Dim everything but one part of the page; an empty text: nothing is dimmed."""
        for stop in STOPS:
            self._explorer.remove_class(f"ew-at-{stop.part.removeprefix('ew-')}")
        if part:
            self._explorer.add_class("ew-touring")
            self._explorer.add_class(f"ew-at-{part.removeprefix('ew-')}")
        else:
            self._explorer.remove_class("ew-touring")

    def leave(self) -> None:
        """Hide the captions, and bring back what was there before."""
        self._place = -1
        show_if(self, False)
        self._point_at("")
        self._restore()
