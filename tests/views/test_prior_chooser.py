"""Choosing a prior: what is made of the fields, what is explained, and what is said about each prior."""

import numpy as np
import pytest
from numpy.typing import NDArray
from views.chains import Wire, widgets_below

import ewens_widgets as ew
from ewens_widgets.model.priors import (
    CountPrior,
    DirichletMultinomial,
    Ewens,
    FiniteMixture,
    Geometric,
    PartitionPrior,
    PitmanYor,
    Poisson,
)
from ewens_widgets.views.prior_chooser import KINDS, PriorChooser, kind_of, prior_name

pytestmark = pytest.mark.usefixtures("wire")

PRIORS = {
    "ewens": Ewens(0.1 + 0.2),
    "ewens-gamma": Ewens(ew.Gamma(2.5, 0.3)),
    "finite-geometric": FiniteMixture(0.7, Geometric(0.125)),
    "finite-poisson": FiniteMixture(2.0, Poisson(4.5)),
    "dirichlet-multinomial": DirichletMultinomial(12345, 1e-7),
    "pitman-yor": PitmanYor(-0.25, 0.5),
}


class Thrice(CountPrior):
    """Three components, always: a prior of another class."""

    @property
    def largest(self) -> float:
        return 3.0

    def log_pmf(self, counts: NDArray[np.integer]) -> NDArray[np.float64]:
        return np.where(counts == 3, 0.0, -np.inf)

    def sample(self, rng: np.random.Generator, size: int | None = None) -> NDArray[np.int64]:
        del rng
        return np.full(() if size is None else size, 3)


def shown(chooser: PriorChooser) -> list[str]:
    return [name for name, field in chooser.fields.items() if field.layout.display != "none"]


def test_there_is_a_row_for_every_prior() -> None:
    assert set(PRIORS) == {kind.key for kind in KINDS}
    public = {getattr(ew.priors, name) for name in ew.priors.__all__}
    priors = {value for value in public if issubclass(value, PartitionPrior)} - {PartitionPrior}
    assert {type(prior) for prior in PRIORS.values()} == priors


@pytest.mark.parametrize("key", PRIORS)
def test_a_prior_that_is_shown_is_read_again_to_the_last_digit(key: str) -> None:
    changes: list[str] = []
    chooser = PriorChooser(Ewens(1.0), lambda: changes.append("changed"))
    chooser.show(PRIORS[key])
    assert chooser.kind.value == key
    assert chooser.read() == PRIORS[key]
    assert chooser.value == PRIORS[key]
    assert chooser.problem == ""
    assert changes == [], "on_change is for changes by the user"
    kind = kind_of(PRIORS[key])
    assert shown(chooser) == [
        "kind",
        *(name for name in chooser.numbers if name in kind.take_apart(PRIORS[key])),
    ]
    assert chooser.fields["kind"].help_text == kind.purpose


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.key)
def test_every_kind_can_be_chosen_and_has_words(kind: object) -> None:
    chooser = PriorChooser(Ewens(1.0))
    chooser.kind.value = kind.key
    prior = chooser.read()
    assert kind_of(prior) is kind
    for text in (prior_name(prior), kind.joining(prior), kind.opening(prior), kind.purpose):
        assert text
    # The formula of joining is the weight that a table of 7 has.
    weight = prior.seating_weights([7])[0]
    constant = kind.joining(prior).rpartition("= ")[2].replace("−", "-").removeprefix("m").replace(" ", "")
    assert weight == pytest.approx(7.0 + float(constant or 0.0), rel=1e-3)


@pytest.mark.parametrize(
    ("prior", "name"),
    [
        (Ewens(1.0), "Ewens, λ = 1"),
        (Ewens(ew.Gamma(1.0, 2.0)), "Ewens, λ ~ Gamma(1, 2)"),
        (FiniteMixture(), "Finite mixture, γ = 1, k ~ Geometric(0.6)"),
        (FiniteMixture(1.0, Poisson(3.0)), "Finite mixture, γ = 1, k − 1 ~ Poisson(3)"),
        (DirichletMultinomial(10, 1.0), "Dirichlet-multinomial, k = 10, λ = 1"),
        (PitmanYor(1.0, 0.5), "Pitman–Yor, λ = 1, σ = 0.5"),
    ],
)
def test_names(prior: PartitionPrior, name: str) -> None:
    assert prior_name(prior) == name


@pytest.mark.parametrize(
    ("key", "texts", "field", "problem"),
    [
        ("ewens", {"concentration": "abc"}, "concentration", "'abc' is not a number"),
        ("ewens", {"concentration": "-1"}, "concentration", "concentration must be positive"),
        ("ewens-gamma", {"shape": "0"}, "shape", "the shape of the Gamma prior must be positive"),
        ("finite-geometric", {"probability": "1.5"}, "probability", "must lie between 0.001 and 1"),
        ("finite-poisson", {"count": "5000"}, "count", "must not exceed 1000"),
        ("dirichlet-multinomial", {"components": "2.5"}, "components", "k must be a whole number"),
        ("pitman-yor", {"discount": "1"}, "discount", "discount must be at least 0 and less than 1"),
        ("pitman-yor", {"concentration": "-0.6"}, "concentration", "larger than minus the discount, -0.5"),
    ],
)
def test_what_is_wrong_is_explained_where_it_is_wrong(
    key: str, texts: dict[str, str], field: str, problem: str
) -> None:
    chooser = PriorChooser(Ewens(1.0))
    chooser.kind.value = key
    for name, text in texts.items():
        chooser.fields[name].control.value = text
    with pytest.raises(ValueError, match=r"must|not a number"):
        chooser.read()
    assert problem in chooser.problem
    assert problem in chooser.fields[field].problem
    assert chooser.value is None
    assert [name for name, part in chooser.fields.items() if part.problem] == [field]
    for name in texts:
        chooser.fields[name].control.value = "1" if name != "discount" else "0.5"
    assert chooser.problem == ""
    assert chooser.fields[field].problem == ""
    assert chooser.value is not None


def test_a_wrong_number_of_another_kind_does_not_matter() -> None:
    chooser = PriorChooser(PitmanYor(1.0, 0.5))
    chooser.fields["discount"].control.value = "x"
    assert chooser.problem
    chooser.kind.value = "ewens"
    assert chooser.value == Ewens(1.0)


def test_slider_and_number_follow_each_other_and_the_owner_is_told_once() -> None:
    changes: list[str] = []
    chooser = PriorChooser(Ewens(1.0), lambda: changes.append("changed"))
    field = chooser.numbers["concentration"]
    assert field.slider.value == pytest.approx(0.0)
    field.slider.value = 1.0
    assert (chooser.value, len(changes)) == (Ewens(10.0), 1)
    field.control.value = "0,5"
    assert (chooser.value, len(changes)) == (Ewens(0.5), 2)
    assert field.slider.value == pytest.approx(np.log10(0.5))
    field.control.value = "5000"
    assert chooser.value == Ewens(5000.0), "what is off the slider can be typed"
    assert field.slider.value == field.slider.max
    field.control.value = "oops"
    assert field.slider.value == field.slider.max
    field.control.value = "0.3"
    field.slider.value = -0.52
    assert chooser.value == Ewens(0.3), "the page's nearest step to a typed number is no change"
    field.slider.value = -0.51
    assert chooser.value == Ewens(0.309)
    chooser.kind.value = "dirichlet-multinomial"
    chooser.numbers["components"].slider.value = 2.0
    field.control.value = "1"
    assert chooser.value == DirichletMultinomial(100, 1.0)


def test_nothing_can_be_chosen_where_that_is_allowed() -> None:
    chooser = PriorChooser(None, is_optional=True)
    assert chooser.read() is None
    assert chooser.problem == ""
    assert shown(chooser) == ["kind"]
    chooser.show(Ewens(3.0))
    assert chooser.value == Ewens(3.0)
    with pytest.raises(ValueError, match="prior must be one of ew"):
        PriorChooser(None)


def test_a_prior_given_in_code_is_kept_and_can_be_chosen_again() -> None:
    own = FiniteMixture(1.0, Thrice())
    chooser = PriorChooser(own)
    assert chooser.read() is own
    assert shown(chooser) == ["kind"]
    assert kind_of(own).joining(own) == "m − -1"
    chooser.kind.value = "pitman-yor"
    assert chooser.read() == PitmanYor(1.0, 0.5)
    chooser.kind.value = "given"
    assert chooser.read() is own
    assert "given" not in [key for _, key in PriorChooser(Ewens(1.0)).kind.options]


def test_reading_twice_sends_nothing(wire: Wire) -> None:
    chooser = PriorChooser(PitmanYor(1.0, 0.5))
    chooser.read()
    wire.clear()
    chooser.read()
    assert wire.messages == []


def test_every_control_has_a_name_and_a_hint() -> None:
    controls = [widget for widget in widgets_below(PriorChooser(Ewens(1.0))) if widget.has_trait("disabled")]
    assert len(controls) >= 17
    for widget in controls:
        assert widget.tooltip, widget
        assert widget.description, widget
