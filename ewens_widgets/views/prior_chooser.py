"""Choosing a prior on partitions: its kind, and its parameters as numbers that are checked.

`KINDS` has a row for each prior of `ew.priors`: its parameters, how to make it from them, how to take it
apart, and what to say about it. Panels that let a prior be chosen show this chooser, and whoever speaks of a
prior asks its row for names and rules. A prior that somebody has written is shown by its name, without
parameters.

A parameter is a number to type, with a slider beside it: dragging is for looking, typing is for meaning it.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ipywidgets import Dropdown, FloatSlider, HBox, Text, VBox

from ewens_widgets.model.priors import (
    DirichletMultinomial,
    Ewens,
    FiniteMixture,
    Geometric,
    PartitionPrior,
    PitmanYor,
    Poisson,
)
from ewens_widgets.model.priors.ewens import Gamma
from ewens_widgets.views.base import Silence, assign
from ewens_widgets.views.fields import Field, number, read_shown, show_only, whole_number

__all__ = ["KINDS", "NumberField", "PriorChooser", "PriorKind", "kind_of", "prior_name"]

_NOTHING, _GIVEN = "nothing", "given"


@dataclass(frozen=True)
class Parameter:
    """A number that a prior has.

    Attributes
    ----------
    name
        Its name among the fields of a chooser. Parameters of two kinds that mean the same share it, and so
        keep their value when another kind is chosen.
    symbol
        What is written beside it.
    start
        Value to begin with.
    low, high
        Ends of its slider; other values can be typed.
    tooltip
        What it is.
    is_whole
        Whether it is a whole number.
    is_even
        Whether steps of the slider are equal; otherwise equal steps are equal factors.
    """

    name: str
    symbol: str
    start: float
    low: float
    high: float
    tooltip: str
    is_whole: bool = False
    is_even: bool = False

    def parse(self, text: str) -> float:
        """Read a number; whether it is allowed is for the prior to say, which knows the others too."""
        return whole_number(self.symbol, 1)(text) if self.is_whole else number(text)


_LAMBDA = Parameter("concentration", "λ", 1.0, 0.1, 100.0, "Concentration λ: the larger, the more clusters")
_SHAPE = Parameter("shape", "shape", 1.0, 0.1, 100.0, "Shape of the Gamma prior of λ")
_RATE = Parameter("rate", "rate", 1.0, 0.1, 100.0, "Rate of the Gamma prior of λ, whose mean is shape / rate")
_K = Parameter("components", "k", 10, 1, 10_000, "Number of components: the most clusters there can be", True)
_GAMMA = Parameter("gamma", "γ", 1.0, 0.1, 100.0, "Dirichlet weights γ: the larger, the more alike the sizes")
_PROBABILITY = Parameter(
    "probability",
    "p",
    0.6,
    0.01,
    1.0,
    "Probability p of the geometric prior of k, whose mean is 1/p",
    is_even=True,
)
_COUNT = Parameter("count", "rate", 3.0, 0.1, 100.0, "Rate of the Poisson prior of k − 1, k components")
_SIGMA = Parameter(
    "discount",
    "σ",
    0.5,
    0.0,
    0.99,
    "Discount σ, from 0 to below 1: the larger, the more small clusters",
    is_even=True,
)


@dataclass(frozen=True)
class PriorKind:
    """A kind of prior: what it is made of, and what is said about it.

    Attributes
    ----------
    key, title
        Its name in the program and in the menu.
    parameters
        Its numbers.
    make
        Makes the prior of the numbers, by name.
    take_apart
        Numbers of a prior of this kind; None of any other.
    name
        Makes a short name of a prior.
    purpose
        What it is for, in a sentence.
    joining, opening
        Weights by which the next object joins m others, and opens a cluster beside K, as formulas.
    """

    key: str
    title: str
    parameters: tuple[Parameter, ...]
    make: Callable[[Mapping[str, Any]], PartitionPrior]
    take_apart: Callable[[Any], dict[str, float] | None]
    name: Callable[[Any], str]
    purpose: str
    joining: Callable[[Any], str]
    opening: Callable[[Any], str]


def _take_ewens(prior: object) -> dict[str, float] | None:
    if type(prior) is not Ewens or isinstance(prior.concentration, Gamma):
        return None
    return {"concentration": prior.concentration}


def _take_gamma(prior: object) -> dict[str, float] | None:
    if type(prior) is not Ewens or not isinstance(prior.concentration, Gamma):
        return None
    return {"shape": prior.concentration.shape, "rate": prior.concentration.rate}


def _take_geometric(prior: object) -> dict[str, float] | None:
    if type(prior) is not FiniteMixture or type(prior.count) is not Geometric:
        return None
    return {"gamma": prior.gamma, "probability": prior.count.probability}


def _take_poisson(prior: object) -> dict[str, float] | None:
    if type(prior) is not FiniteMixture or type(prior.count) is not Poisson:
        return None
    return {"gamma": prior.gamma, "count": prior.count.rate}


def _take_finite(prior: object) -> dict[str, float] | None:
    if type(prior) is not DirichletMultinomial:
        return None
    return {"components": prior.k, "concentration": prior.concentration}


def _take_pitman_yor(prior: object) -> dict[str, float] | None:
    if type(prior) is not PitmanYor:
        return None
    return {"concentration": prior.concentration, "discount": prior.discount}


_MIXTURE: dict[str, Any] = {
    "purpose": "The number of clusters as the question: it settles as n grows, without tiny ones.",
    "joining": lambda prior: f"m + γ = m + {prior.gamma:.4g}",
    "opening": lambda _: "γ V(K+1)/V(K)",
}

KINDS = (
    PriorKind(
        "ewens",
        "Ewens",
        (_LAMBDA,),
        lambda values: Ewens(values["concentration"]),
        _take_ewens,
        lambda prior: f"Ewens, λ = {prior.concentration:.4g}",
        "The paper's: the number of clusters grows like λ log n, and most of them are small.",
        lambda _: "m",
        lambda prior: f"λ = {prior.concentration:.4g}",
    ),
    PriorKind(
        "ewens-gamma",
        "Ewens, λ learned",
        (_SHAPE, _RATE),
        lambda values: Ewens(Gamma(values["shape"], values["rate"])),
        _take_gamma,
        lambda prior: f"Ewens, λ ~ Gamma({prior.concentration.shape:.4g}, {prior.concentration.rate:.4g})",
        "Where λ is not known: it has a Gamma prior, and many clusters make a large λ likely.",
        lambda _: "m",
        lambda _: "the mean of λ, given the tables",
    ),
    PriorKind(
        "finite-geometric",
        "Finite, geometric",
        (_GAMMA, _PROBABILITY),
        lambda values: FiniteMixture(values["gamma"], Geometric(values["probability"])),
        _take_geometric,
        lambda prior: f"Finite mixture, γ = {prior.gamma:.4g}, k ~ Geometric({prior.count.probability:.4g})",
        **_MIXTURE,
    ),
    PriorKind(
        "finite-poisson",
        "Finite, Poisson",
        (_GAMMA, _COUNT),
        lambda values: FiniteMixture(values["gamma"], Poisson(values["count"])),
        _take_poisson,
        lambda prior: f"Finite mixture, γ = {prior.gamma:.4g}, k − 1 ~ Poisson({prior.count.rate:.4g})",
        **_MIXTURE,
    ),
    PriorKind(
        "dirichlet-multinomial",
        "Dirichlet-multinomial",
        (_K, _LAMBDA),
        lambda values: DirichletMultinomial(values["components"], values["concentration"]),
        _take_finite,
        lambda prior: f"Dirichlet-multinomial, k = {prior.k}, λ = {prior.concentration:.4g}",
        "A known number k of components, with Dirichlet(λ/k) weights: as k grows, it becomes Ewens' prior.",
        lambda prior: f"m + λ/k = m + {prior.share:.4g}",
        lambda _: "λ(1 − K/k)",
    ),
    PriorKind(
        "pitman-yor",
        "Pitman–Yor",
        (_LAMBDA, _SIGMA),
        lambda values: PitmanYor(values["concentration"], values["discount"]),
        _take_pitman_yor,
        lambda prior: f"Pitman–Yor, λ = {prior.concentration:.4g}, σ = {prior.discount:.4g}",
        "Many small clusters beside a few large ones: their number grows like n to the power σ.",
        lambda prior: f"m − σ = m − {prior.discount:.4g}",
        lambda prior: f"λ + σK = {prior.concentration:.4g} + {prior.discount:.4g} K",
    ),
)
"""The priors of `ew.priors`, in the order of the menu."""

_OWN = PriorKind(
    _GIVEN,
    "given in code",
    (),
    lambda values: values["prior"],
    lambda _: {},
    str,
    "A prior that was given in code; the menu has others.",
    lambda prior: f"m − {1.0 - prior.seating_weights([1])[0]:.4g}",
    lambda _: "W(1) V(K+1)/V(K)",
)


def kind_of(prior: PartitionPrior) -> PriorKind:
    """Row of a prior; of one that somebody has written, a row that says so."""
    return next((kind for kind in KINDS if kind.take_apart(prior) is not None), _OWN)


def prior_name(prior: PartitionPrior) -> str:
    """Short name, such as Ewens, λ = 1."""
    return kind_of(prior).name(prior)


class NumberField(Field):
    """A number to type, and a slider that types it.

    Parameters
    ----------
    parameter
        What it is.
    """

    def __init__(self, parameter: Parameter) -> None:
        self._parameter = parameter
        self._silence = Silence()
        # Screen readers tell the two apart by their names; the eye needs one.
        text = Text(
            value=f"{parameter.start:g}",
            description=f"{parameter.symbol} as a number",
            tooltip=parameter.tooltip,
            continuous_update=False,
        )
        places = [self._place(end) for end in (parameter.low, parameter.high)]
        self._shown_place = self._place(parameter.start)
        self.slider = FloatSlider(
            value=self._shown_place,
            min=places[0],
            max=places[1],
            step=0.05 if parameter.is_whole else 0.01,
            description=parameter.symbol,
            tooltip=parameter.tooltip,
            readout=False,
        )
        row = HBox((self.slider, text))
        row.add_class("ew-number-row")
        super().__init__(text, parameter.parse, f"ew-prior-{parameter.name}", shown=row)
        self.add_class("ew-number")
        self.slider.observe(self._on_slid, "value")
        text.observe(self._on_typed, "value")

    def disable(self, is_disabled: bool) -> None:
        """Take the number out of the user's hands, or give it back."""
        assign(self.control, disabled=is_disabled)
        assign(self.slider, disabled=is_disabled)

    def _place(self, value: float) -> float:
        """Place of a value on the slider."""
        return value if self._parameter.is_even else math.log10(value)

    def _on_slid(self, change: dict[str, Any]) -> None:
        place = change["new"]
        # The page takes the nearest step and says so, whoever moved the slider: the number stays what it was.
        if self._silence or abs(place - self._shown_place) <= 0.501 * self.slider.step:
            return
        value = place if self._parameter.is_even else 10.0**place
        self._shown_place = place
        with self._silence:
            self.control.value = str(round(value)) if self._parameter.is_whole else f"{value:.3g}"

    def _on_typed(self, change: dict[str, Any]) -> None:
        if self._silence:
            return
        try:
            value = self._parameter.parse(change["new"])
        except ValueError:
            return  # whoever reads the field says what is wrong
        low, high = self._parameter.low, self._parameter.high
        self._shown_place = self._place(min(max(value, low), high))
        with self._silence:
            assign(self.slider, value=self._shown_place)


class PriorChooser(VBox):
    """A menu of priors, and the parameters of the one that is chosen.

    Parameters
    ----------
    prior
        What it shows at first; None for nothing, if that is allowed.
    on_change
        Called after a change by the user, on the thread of the message; whoever is called has it arranged and
        read on the event loop. None where the owner observes `fields` himself.
    description
        What is written beside the menu.
    is_optional
        Whether nothing can be chosen too.
    """

    def __init__(
        self,
        prior: PartitionPrior | None,
        on_change: Callable[[], None] | None = None,
        *,
        description: str = "prior",
        is_optional: bool = False,
    ) -> None:
        if prior is None and not is_optional:
            raise ValueError("prior must be one of ew.priors; got None.")
        self._on_change = on_change
        self._silence = Silence()
        self._given: PartitionPrior | None = None
        self._first: list[tuple[str, str]] = [("nothing", _NOTHING)] if is_optional else []
        self.kind = Dropdown(
            options=self._options(),
            value=KINDS[0].key,
            description=description,
            tooltip="Prior on partitions: what is believed of the clusters before any data are seen",
        )
        numbers = {parameter.name: parameter for kind in KINDS for parameter in kind.parameters}
        self.numbers = {name: NumberField(parameter) for name, parameter in numbers.items()}
        self.fields: dict[str, Field] = {"kind": Field(self.kind, str, "ew-kind", " "), **self.numbers}
        super().__init__(tuple(self.fields.values()))
        self.add_class("ew-prior-chooser")
        self.show(prior)
        for field in self.fields.values():
            field.control.observe(self._changed, "value")

    def _options(self) -> list[tuple[str, str]]:
        own = [] if self._given is None else [(_OWN.title, _GIVEN)]
        return [*self._first, *((kind.title, kind.key) for kind in KINDS), *own]

    def _changed(self, _: dict[str, Any]) -> None:
        if not self._silence and self._on_change is not None:
            self._on_change()

    @property
    def chosen(self) -> PriorKind | None:
        """Kind that is chosen; None for nothing."""
        key = self.kind.value
        return next((kind for kind in (*KINDS, _OWN) if kind.key == key), None)

    @property
    def value(self) -> PartitionPrior | None:
        """The prior that is chosen; None where nothing is chosen, or something is wrong: see `problem`."""
        try:
            return self.read()
        except ValueError:
            return None

    @property
    def problem(self) -> str:
        """What is wrong, as plain text; empty if nothing is."""
        try:
            self.read()
        except ValueError as error:
            return str(error)
        return ""

    def arrange(self) -> None:
        """Show the parameters of the kind that is chosen, and what it is for."""
        kind = self.chosen
        parameters = () if kind is None else kind.parameters
        show_only(self.fields, {"kind", *(parameter.name for parameter in parameters)})
        self.fields["kind"].help_text = "" if kind is None else kind.purpose

    def read(self) -> PartitionPrior | None:
        """Return the prior; explain below the field what is wrong, and raise `ValueError`."""
        self.arrange()
        values = read_shown(self.fields)
        kind = self.chosen
        if kind is None:
            return None
        try:
            return kind.make({**values, "prior": self._given})
        except (ValueError, TypeError) as error:
            self._blame(kind, str(error))
            raise ValueError(str(error)) from error

    def _blame(self, kind: PriorKind, problem: str) -> None:
        """Explain a problem below the parameter it speaks of, or below the last one."""
        subject, _, _ = problem.partition(" must")
        named = [parameter.name for parameter in kind.parameters if parameter.name in subject]
        self.fields[named[0] if named else kind.parameters[-1].name].problem = problem

    def show(self, prior: PartitionPrior | None) -> None:
        """Show a given prior; nobody is told of a change."""
        with self._silence:
            if prior is None:
                self.kind.value = _NOTHING
            else:
                kind = kind_of(prior)
                if kind is _OWN:
                    self._given = prior
                    assign(self.kind, options=self._options())
                self.kind.value = kind.key
                for name, value in (kind.take_apart(prior) or {}).items():
                    self.set_text(name, repr(value).removesuffix(".0"))
            self.arrange()

    def set_text(self, name: str, text: str) -> None:
        """Show another value of a parameter, as if it had been typed; nobody is told of a change."""
        with self._silence:
            self.fields[name].control.value = text
