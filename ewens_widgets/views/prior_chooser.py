"""Choosing a prior on partitions: its kind, and its parameters as numbers that are checked.

`KINDS` has a row for each prior of `ew.priors`: its parameters, its constructor, its names and its seating
rule. A new prior appears in all menus once it has a row. A prior of another class is shown by its name,
without parameters.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from ipywidgets import Dropdown, FloatSlider, HBox, Text, VBox

from ewens_widgets.model import priors
from ewens_widgets.model.priors import PartitionPrior
from ewens_widgets.model.priors.ewens import Gamma
from ewens_widgets.views.base import Silence, assign, look, make
from ewens_widgets.views.fields import Field, number, read_shown, show_only, whole_number

_NOTHING, _GIVEN = "nothing", "given"


@dataclass(frozen=True)
class Parameter:
    """A parameter of a prior; kinds of priors share the parameters that have the same meaning."""

    name: str
    symbol: str
    tooltip: str
    path: str = ""  # of the prior's attribute; by default the name
    start: float = 1.0
    low: float = 0.1  # end of the slider; other values can be typed
    high: float = 100.0
    is_whole: bool = False
    is_even: bool = False  # equal steps of the slider; otherwise equal factors

    def parse(self, text: str) -> float:
        """Read a number; the constructor of the prior checks it together with the others."""
        return whole_number(self.symbol, 1)(text) if self.is_whole else number(text)


_LAMBDA = Parameter("concentration", "λ", "Concentration λ: the larger, the more clusters")
_SHAPE = Parameter("shape", "shape", "Shape of the Gamma prior of λ", "concentration.shape")
_MEAN = "Rate of the Gamma prior of λ, whose mean is shape / rate"
_RATE = Parameter("rate", "rate", _MEAN, "concentration.rate")
_NUMBER = "Number of components: the largest possible number of clusters"
_K = Parameter("components", "k", _NUMBER, "k", 10, 1, 10_000, is_whole=True)
_WEIGHTS = "Parameter γ of the Dirichlet weights: the larger, the more similar the cluster sizes"
_GAMMA = Parameter("gamma", "γ", _WEIGHTS)
_GEOMETRIC = "Probability p of the geometric prior of k, whose mean is 1/p"
_PROBABILITY = Parameter("probability", "p", _GEOMETRIC, "count.probability", 0.6, 0.01, 1.0, is_even=True)
_COUNT = Parameter("count", "rate", "Rate of the Poisson prior of k − 1, k components", "count.rate", 3.0)
_DISCOUNT = "Discount σ, from 0 to below 1: the larger, the more small clusters"
_SIGMA = Parameter("discount", "σ", _DISCOUNT, "", 0.5, 0.0, 0.99, is_even=True)


@dataclass(frozen=True)
class PriorKind:
    """A kind of prior: its key, its title in the menu, its parameters, and its texts."""

    key: str
    title: str
    parameters: tuple[Parameter, ...]
    make: Callable[..., PartitionPrior]  # of the numbers, in this order
    matches: Callable[[Any], bool]
    name: Callable[[Any], str]  # short
    purpose: str
    joining: Callable[[Any], str]  # weight by which the next object joins m others, as a formula
    opening: Callable[[Any], str]  # weight by which it opens a cluster next to K

    def take_apart(self, prior: object) -> dict[str, float] | None:
        """Parameters of a prior of this kind, by name; None for any other prior."""
        if not self.matches(prior):
            return None
        return {one.name: attrgetter(one.path or one.name)(prior) for one in self.parameters}


def _is_ewens(prior: object, *, is_learned: bool) -> bool:
    return type(prior) is priors.Ewens and isinstance(prior.concentration, Gamma) is is_learned


def _is_mixture(prior: object, count: type) -> bool:
    return type(prior) is priors.FiniteMixture and type(prior.count) is count


_MIXTURE: dict[str, Any] = {
    "purpose": "Where the number of clusters is fixed but unknown: it converges as n grows.",
    "joining": "m + γ = m + {.gamma:.4g}".format,
    "opening": "γ V(K+1)/V(K)".format,
}

KINDS = (
    PriorKind(
        "ewens",
        "Ewens",
        (_LAMBDA,),
        priors.Ewens,
        lambda prior: _is_ewens(prior, is_learned=False),
        "Ewens, λ = {.concentration:.4g}".format,
        "The paper's prior: the number of clusters grows like λ log n, and most clusters are small.",
        "m".format,
        "λ = {.concentration:.4g}".format,
    ),
    PriorKind(
        "ewens-gamma",
        "Ewens, λ learned",
        (_SHAPE, _RATE),
        lambda shape, rate: priors.Ewens(Gamma(shape, rate)),
        lambda prior: _is_ewens(prior, is_learned=True),
        "Ewens, λ ~ Gamma({0.concentration.shape:.4g}, {0.concentration.rate:.4g})".format,
        "Where λ is unknown: it has a Gamma prior and is sampled.",
        "m".format,
        "posterior mean of λ given the tables".format,
    ),
    PriorKind(
        "finite-geometric",
        "Finite, geometric",
        (_GAMMA, _PROBABILITY),
        lambda gamma, probability: priors.FiniteMixture(gamma, priors.Geometric(probability)),
        lambda prior: _is_mixture(prior, priors.Geometric),
        "Finite mixture, γ = {0.gamma:.4g}, k ~ Geometric({0.count.probability:.4g})".format,
        **_MIXTURE,
    ),
    PriorKind(
        "finite-poisson",
        "Finite, Poisson",
        (_GAMMA, _COUNT),
        lambda gamma, rate: priors.FiniteMixture(gamma, priors.Poisson(rate)),
        lambda prior: _is_mixture(prior, priors.Poisson),
        "Finite mixture, γ = {0.gamma:.4g}, k − 1 ~ Poisson({0.count.rate:.4g})".format,
        **_MIXTURE,
    ),
    PriorKind(
        "dirichlet-multinomial",
        "Dirichlet-multinomial",
        (_K, _LAMBDA),
        priors.DirichletMultinomial,
        lambda prior: type(prior) is priors.DirichletMultinomial,
        "Dirichlet-multinomial, k = {0.k}, λ = {0.concentration:.4g}".format,
        "A known number k of components with Dirichlet(λ/k) weights; it tends to the Ewens prior as k grows.",
        "m + λ/k = m + {.share:.4g}".format,
        "λ(1 − K/k)".format,
    ),
    PriorKind(
        "pitman-yor",
        "Pitman–Yor",
        (_LAMBDA, _SIGMA),
        priors.PitmanYor,
        lambda prior: type(prior) is priors.PitmanYor,
        "Pitman–Yor, λ = {0.concentration:.4g}, σ = {0.discount:.4g}".format,
        "Many small clusters and a few large ones: their number grows like n to the power σ.",
        "m − σ = m − {.discount:.4g}".format,
        "λ + σK = {0.concentration:.4g} + {0.discount:.4g} K".format,
    ),
)
"""The priors of `ew.priors`, in the order of the menu."""

_OWN = PriorKind(
    _GIVEN,
    "given in code",
    (),
    PartitionPrior,
    lambda _: True,
    str,
    "The prior that was given in code.",
    lambda prior: f"m − {1.0 - prior.seating_weights([1])[0]:.4g}",
    "W(1) V(K+1)/V(K)".format,
)


def kind_of(prior: PartitionPrior) -> PriorKind:
    """Row of a prior; for a prior of another class the row of priors given in code."""
    return next(kind for kind in (*KINDS, _OWN) if kind.matches(prior))


def prior_name(prior: PartitionPrior) -> str:
    """Short name, such as Ewens, λ = 1."""
    return kind_of(prior).name(prior)


class NumberField(Field):
    """A parameter as a number to type, with a slider."""

    def __init__(self, parameter: Parameter) -> None:
        self._parameter = parameter
        self._silence = Silence()
        # The text has a name of its own for screen readers.
        text = make(
            Text,
            value=f"{parameter.start:g}",
            description=f"{parameter.symbol} as a number",
            tooltip=parameter.tooltip,
            continuous_update=False,
        )
        low, high, self._shown_place = map(self._place, (parameter.low, parameter.high, parameter.start))
        self.slider = make(
            FloatSlider,
            value=self._shown_place,
            min=low,
            max=high,
            step=0.05 if parameter.is_whole else 0.01,
            description=parameter.symbol,
            tooltip=parameter.tooltip,
            readout=False,
        )
        row = HBox((self.slider, text), **look("ew-number-row"))
        super().__init__(text, parameter.parse, f"ew-prior-{parameter.name} ew-number", shown=row)
        self.slider.observe(self._on_slid, "value")
        text.observe(self._on_typed, "value")

    def disable(self, is_disabled: bool) -> None:
        """Disable the number and its slider, or enable them again."""
        assign(self.control, disabled=is_disabled)
        assign(self.slider, disabled=is_disabled)

    def _place(self, value: float) -> float:
        """Place of a value on the slider."""
        return value if self._parameter.is_even else math.log10(value)

    def _on_slid(self, change: dict[str, Any]) -> None:
        place = change["new"]
        # The page reports the nearest step also when the program has moved the slider; then the exact number
        # stays.
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
            return  # explained when the field is read
        self._shown_place = self._place(min(max(value, self._parameter.low), self._parameter.high))
        with self._silence:
            assign(self.slider, value=self._shown_place)


class PriorChooser(VBox):
    """A menu of priors, and the parameters of the one that is chosen.

    Parameters
    ----------
    prior
        Initial prior; None for no prior, if `is_optional`.
    on_change
        Called after a change by the user, on the thread of the message; the owner then reads the chooser on
        the event loop. None if the owner observes `fields`.
    description
        Label of the menu.
    is_optional
        Whether the menu has an entry for no prior.
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
        self.kind = make(
            Dropdown,
            options=self._options(),
            value=KINDS[0].key,
            description=description,
            tooltip="Prior on partitions: their distribution before any data",
        )
        numbers = {parameter.name: parameter for kind in KINDS for parameter in kind.parameters}
        self.numbers = {name: NumberField(parameter) for name, parameter in numbers.items()}
        self.fields: dict[str, Field] = {"kind": Field(self.kind, str, "ew-kind"), **self.numbers}
        super().__init__(tuple(self.fields.values()), **look("ew-prior-chooser"))
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
        """Kind that is chosen; None if there is none."""
        key = self.kind.value
        return next((kind for kind in (*KINDS, _OWN) if kind.key == key), None)

    @property
    def value(self) -> PartitionPrior | None:
        """The prior that is chosen; None if there is none, or a parameter is wrong: see `problem`."""
        with suppress(ValueError):
            return self.read()
        return None

    @property
    def problem(self) -> str:
        """What is wrong with the parameters, as plain text; empty if they are valid."""
        try:
            self.read()
        except ValueError as error:
            return str(error)
        return ""

    def arrange(self) -> None:
        """Show the parameters and the purpose of the kind that is chosen."""
        kind = self.chosen
        parameters = () if kind is None else kind.parameters
        show_only(self.fields, {"kind", *(parameter.name for parameter in parameters)})
        self.fields["kind"].help_text = "" if kind is None else kind.purpose

    def read(self) -> PartitionPrior | None:
        """Return the prior; explain below the field what is wrong, and raise `ValueError`."""
        self.arrange()
        values = read_shown(self.fields)
        kind = self.chosen
        if kind is None or kind is _OWN:
            return self._given if kind is _OWN else None
        try:
            return kind.make(*(values[parameter.name] for parameter in kind.parameters))
        except (ValueError, TypeError) as error:
            # Shown below the parameter that the sentence names, or below the last one.
            subject, _, _ = str(error).partition(" must")
            named = [parameter.name for parameter in kind.parameters if parameter.name in subject]
            self.fields[named[0] if named else kind.parameters[-1].name].problem = str(error)
            raise ValueError(str(error)) from error

    def show(self, prior: PartitionPrior | None) -> None:
        """Show a prior, without calling `on_change`."""
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
        """Show the text of a parameter, without calling `on_change`."""
        with self._silence:
            self.fields[name].control.value = text
