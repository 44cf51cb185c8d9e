"""The prior lab without a browser: what its controls do, what it shows, and what it says."""

import asyncio
import re
from typing import Any

import numpy as np
import pytest
from playback.fakes import at_rest

import ewens_widgets as ew
from ewens_widgets.model.priors import (
    DirichletMultinomial,
    Ewens,
    FiniteMixture,
    Geometric,
    PartitionPrior,
    PitmanYor,
    Poisson,
)
from ewens_widgets.model.priors.partition_prior import total_variation
from ewens_widgets.views.labs.prior_charts import count_distribution, size_bins
from ewens_widgets.views.labs.prior_lab import PARTITION, PriorLab
from ewens_widgets.views.labs.restaurant import RestaurantPanel
from ewens_widgets.views.prior_chooser import prior_name

pytestmark = pytest.mark.usefixtures("wire")

GAMMA = ew.Gamma(4.0, 2.0)


@pytest.fixture
def lab() -> PriorLab:
    return PriorLab(concentration=2.0, n=30, compare=ew.priors.DirichletMultinomial(10, 2.0))


def numbers(html: str, name: str) -> list[float]:
    return [float(text) for text in re.findall(rf'class="ew-{name}">([^<]*)<', html)]


def number(html: str, name: str) -> float:
    return numbers(html, name)[0]


def drop(restaurant: RestaurantPanel, guest: int, table: int) -> dict[str, object]:
    """What the page says when a guest has been dropped on a table."""
    x, y = restaurant._plan.centres[table].tolist()
    return {"kind": "drop", "guest": guest, "x": x, "y": y}


def test_exact_distributions_and_draws_of_both_are_shown(lab: PriorLab) -> None:
    priors = (Ewens(2.0), DirichletMultinomial(10, 2.0))
    exact = [prior.count_pmf(30) for prior in priors]
    lab.draw(3000)
    distribution, sizes, growth = lab.distribution, lab.sizes, lab.growth
    names, bins = size_bins(30)
    assert names == ["1", "2", "3–4", "5–8", "9–16", "17–30"]
    for place, (prior, seating) in enumerate(zip(priors, lab.seatings, strict=True)):
        line, heights = distribution.exact[place], distribution.draws.y[place]
        places = line.x.astype(int)
        assert line.visible
        np.testing.assert_allclose(line.y, exact[place][places])
        np.testing.assert_allclose(heights, seating.tally.counts[places] / 3000, atol=1e-6)
        assert np.abs(heights - line.y).max() < 0.04
        np.testing.assert_allclose(sizes.exact[place].y, bins @ prior.expected_sizes(30))
        np.testing.assert_allclose(sizes.draws.y[place], sizes.exact[place].y, atol=0.1)
        assert growth.exact[place].y[-1] == pytest.approx(prior.expected_clusters(30))
    html = distribution.result.value
    assert numbers(html, "mean") == pytest.approx([shares @ np.arange(31) for shares in exact], abs=5e-4)
    assert number(html, "distance") == pytest.approx(total_variation(*exact), abs=5e-5)
    means = [seating.tally.mean_clusters() for seating in lab.seatings]
    assert numbers(html, "draws-mean") == pytest.approx(means, abs=5e-4)
    assert max(numbers(html, "draws-distance")) < 0.06
    lab.step(20)
    for line, seating in zip(growth.paths, lab.seatings, strict=True):
        path = seating.path
        assert (line.x[-1], line.y[-1]) == (20.0, path[-1])
        for guests, clusters in zip(line.x, line.y, strict=True):
            assert path[int(guests) - 1] == clusters


def test_more_components_come_closer(lab: PriorLab) -> None:
    distances = []
    for components in (2, 10, 100, 10_000):
        lab.choosers[1].fields["components"].control.value = str(components)
        lab._worker.refresh()
        distances.append(number(lab.distribution.result.value, "distance"))
    assert distances == sorted(distances, reverse=True)
    assert distances[0] > 0.9
    assert distances[-1] < 0.002


@pytest.mark.parametrize("n", [2, 3, 4, 5, 1000])
def test_bins_hold_every_size_once(n: int) -> None:
    names, bins = size_bins(n)
    assert len(names) == len(bins)
    assert bins.sum(axis=0).tolist() == [0.0] + [1.0] * n


def test_a_thousand_guests_and_extreme_concentrations_are_no_problem() -> None:
    lab = PriorLab(concentration=50.0, n=1000, compare=DirichletMultinomial(1000, 50.0))
    lab.draw(100)
    for line in lab.distribution.exact:
        assert line.y.sum() == pytest.approx(1.0, abs=0.01)
    for restaurant, seating in zip(lab.restaurants, lab.seatings, strict=True):
        assert len(restaurant.room.scene["guests"]) == 1000
        assert len(restaurant.room.scene["tables"]) == seating.labels.max() + 2
    extreme = PriorLab(concentration=1e9, n=100)
    extreme.draw(10)
    assert number(extreme.distribution.result.value, "mean") == 100.0


@pytest.mark.parametrize(
    "prior",
    [
        Ewens(ew.Gamma(1.0, 1.0)),
        FiniteMixture(1e-3, Geometric(0.01)),
        FiniteMixture(1.0, Poisson(1000.0)),
    ],
)
def test_exact_are_cut_where_nothing_is_left(prior: PartitionPrior) -> None:
    shares = count_distribution(prior, 200)
    np.testing.assert_allclose(shares, prior.count_pmf(200), atol=1e-9)
    assert shares.sum() == pytest.approx(1.0, abs=2e-9)


@pytest.mark.parametrize(
    ("arguments", "priors"),
    [
        ({}, (Ewens(1.0), DirichletMultinomial(10, 1.0))),
        ({"concentration": GAMMA}, (Ewens(GAMMA), DirichletMultinomial(10, 2.0))),
        ({"prior": FiniteMixture()}, (FiniteMixture(), Ewens(1.0))),
    ],
)
def test_what_is_compared_by_default(arguments: dict[str, Any], priors: tuple[object, ...]) -> None:
    lab = PriorLab(**arguments)
    assert (lab.prior, lab.compare) == priors


@pytest.mark.parametrize("prior", [Ewens(ew.Gamma(1.0, 1.0)), FiniteMixture(), PitmanYor(1.0, 0.5)], ids=str)
def test_any_two_can_be_compared(prior: PartitionPrior) -> None:
    lab = PriorLab(prior=prior, compare=FiniteMixture(1.0, Poisson(3.0)), n=40)
    assert lab.choosers[0].value == prior
    lab.draw(3000)
    exact, drawn = (numbers(lab.distribution.result.value, name) for name in ("mean", "draws-mean"))
    expected = [one.expected_clusters(40) for one in (prior, lab.compare)]
    assert exact == pytest.approx(expected, abs=1e-3)
    assert drawn == pytest.approx(exact, abs=0.35)
    assert repr(lab).startswith(f"PriorLab({prior_name(prior)} against Finite mixture")
    assert "40 of 40 guests seated · " in repr(lab)


def test_nothing_can_be_compared_with() -> None:
    lab = PriorLab(prior=PitmanYor(1.0, 0.5), compare=None, n=40)
    lab.step()
    assert lab.caption() == "guest 1 of 40 opens table 1 (chance 1.00) · 1 table · 0 partitions drawn"
    assert lab.compare is None
    assert lab.restaurants[1].layout.display == "none"
    assert [line.visible for line in lab.distribution.exact] == [True, False]
    assert lab.distribution.draws.y.ndim == 1
    assert "distance of the two" not in lab.distribution.result.value
    assert lab.panels == (lab.restaurants[0], lab.distribution, lab.growth, lab.sizes)
    assert lab.picture().startswith(b"\x89PNG")
    assert "against" not in repr(lab)
    lab.choosers[1].kind.value = "ewens"
    assert lab.compare == Ewens(1.0)
    assert lab.restaurants[1].layout.display == ""
    lab.choosers[1].kind.value = "nothing"
    assert lab.compare is None


def test_other_priors_are_chosen_draws_follow_and_what_is_wrong_changes_nothing(lab: PriorLab) -> None:
    lab.draw(10)
    rate = lab.choosers[0].fields["concentration"]
    rate.control.value = "-2"
    assert "must be positive" in rate.problem
    assert (lab.prior, lab.tally.n_draws) == (Ewens(2.0), 10)
    rate.control.value = "2"
    assert rate.problem == ""
    assert lab.tally.n_draws == 10, "the same prior again"
    lab.choosers[0].kind.value = "finite-geometric"
    assert (lab.prior, lab.tally.n_draws, lab.labels.size) == (FiniteMixture(), 10, 30)
    lab.choosers[0].fields["gamma"].control.value = "2.5"
    assert lab.prior == FiniteMixture(2.5)
    assert lab.restaurants[0].title == "Finite mixture, γ = 2.5, k ~ Geometric(0.6)"


def test_the_second_concentration_follows_the_first_where_it_should(lab: PriorLab) -> None:
    assert lab.shared.value
    second = lab.choosers[1].numbers["concentration"]
    assert second.control.disabled
    lab.choosers[0].fields["concentration"].control.value = "5"
    assert lab.compare == DirichletMultinomial(10, 5.0)
    lab.shared.value = False
    assert not second.control.disabled
    lab.choosers[0].fields["concentration"].control.value = "7"
    assert (lab.prior, lab.compare) == (Ewens(7.0), DirichletMultinomial(10, 5.0))
    lab.shared.value = True
    assert lab.compare == DirichletMultinomial(10, 7.0)
    lab.choosers[1].kind.value = "finite-poisson"
    assert lab.shared_field.layout.display == "none"
    assert not PriorLab(prior=Ewens(1.0), compare=Ewens(1.0)).shared.value, "two of a kind differ"


def test_guests_are_shown_as_they_come(lab: PriorLab) -> None:
    assert "No guest is seated yet" in lab.chance.value
    lab.step()
    assert lab.status.value == (
        "guest 1 of 30 opens table 1 (chance 1.00) and opens table 1 (1.00) · 1 and 1 tables · "
        "0 partitions drawn"
    )
    lab.step(11)
    for restaurant, seating in zip(lab.restaurants, lab.seatings, strict=True):
        scene = restaurant.room.scene
        assert [guest[2] for guest in scene["guests"]] == seating.labels.tolist()
        assert scene["newest"] == 11
        chances = seating.prior.seating_probabilities(np.bincount(seating.labels))
        assert [table["text"] for table in scene["tables"]][-1] == f"new · {chances[-1]:.0%}"
    expected = [np.exp(seating.prior.log_pmf(seating.labels)) for seating in lab.seatings]
    assert numbers(lab.chance.value, "probability") == pytest.approx(expected, rel=1e-5)


def test_the_rule_of_each_is_told_in_words_and_numbers(lab: PriorLab) -> None:
    lab.show_partition("1 2 3 | 4")
    first, second = (restaurant.rule.value for restaurant in lab.restaurants)
    assert "A table of m guests has weight <b>m</b>, a new one <b>λ = 2</b>." in first
    assert "<td>3</td><td>1</td><td>2</td>" in first
    assert "A table of m guests has weight <b>m + λ/k = m + 0.2</b>" in second
    assert "<td>3.2</td><td>1.2</td><td>1.6</td>" in second
    assert "<td>50.0%</td><td>16.7%</td><td>33.3%</td>" in first
    assert "<td>53.3%</td><td>20.0%</td><td>26.7%</td>" in second
    lab.show_partition([0] * 9 + [1] * 4)
    radii = [table["r"] for table in lab.restaurants[0].room.scene["tables"]]
    assert radii[0] / radii[1] == pytest.approx(3.5 / 2.5, rel=0.01), "areas are in proportion"


def test_a_parameter_that_is_moved_keeps_guests_and_draws(lab: PriorLab) -> None:
    lab.draw(200)
    lab.step(7)
    for rate in ("5", "8"):
        lab.choosers[0].fields["concentration"].control.value = rate
        assert (lab.labels.size, lab.tally.n_draws) == (7, 200)
    assert lab.tally.mean_clusters() == pytest.approx(Ewens(8.0).expected_clusters(30), abs=0.6)
    again = PriorLab(8.0, n=30)
    again.draw(200)
    again.step(7)
    assert lab.labels.tolist() == again.labels.tolist(), "the seed is the same"
    lab.guests.value = 12
    assert lab.tally.n_draws == 0
    lab.step(12)
    assert lab.tally.n_draws == 1


def test_a_typed_partition_is_shown_with_its_probabilities(lab: PriorLab) -> None:
    lab.step(7)
    lab.field.control.value = "1 2 | 3"
    assert lab.labels.tolist() == [0, 0, 1]
    assert lab.log_probability("1 2 | 3") == lab.log_probability([7, 7, 5]) == pytest.approx(np.log(1 / 6))
    finite = DirichletMultinomial(10, 2.0).log_pmf([0, 0, 1])
    assert numbers(lab.chance.value, "probability") == pytest.approx([1 / 6, np.exp(finite)], rel=1e-5)
    assert "= 2/2 · 1/3 · 2/4" in lab.chance.value
    assert "Probability of your partition of 3 objects" in lab.chance.value
    for restaurant in lab.restaurants:
        assert len(restaurant.room.scene["guests"]) == 3
    assert lab.back.layout.display == ""
    lab.choosers[0].fields["concentration"].control.value = "4"
    lab._worker.refresh()
    assert number(lab.chance.value, "probability") == pytest.approx(1 / 5 * 4 / 6, rel=1e-5)
    lab.field.control.value = "1 2 | 2"
    assert "twice" in lab.field.problem
    assert lab.labels.tolist() == [0, 0, 1]
    lab.field.control.value = ""
    assert lab.field.problem == ""
    assert lab.labels.size == 7


def test_a_partition_that_one_prior_forbids_is_shown_too() -> None:
    lab = PriorLab(compare=DirichletMultinomial(2, 1.0))
    lab.show_partition("1 | 2 | 3")
    assert numbers(lab.chance.value, "probability") == pytest.approx([1 / 6, 0.0], rel=1e-5)
    assert "impossible" in lab.restaurants[1].rule.value


def test_a_dragged_guest_changes_the_partition_and_the_text(lab: PriorLab) -> None:
    lab.field.control.value = "1 2 | 3"
    first, second = lab.restaurants
    first._on_message(None, drop(first, 0, 1), [])
    assert lab.labels.tolist() == [0, 1, 0]
    assert lab.field.control.value == "1 3 | 2"
    second._on_message(None, drop(second, 2, 2), [])
    assert lab.labels.tolist() == [0, 1, 2]
    assert number(lab.chance.value, "probability") == pytest.approx(2 / 3 * 2 / 4, rel=1e-5)
    first._on_message(None, {"kind": "move", "guest": 1, "table": 0}, [])
    assert lab.labels.tolist() == [0, 0, 1]


def test_what_is_edited_is_no_draw_and_the_next_guest_puts_it_away(lab: PriorLab) -> None:
    lab.step(3)
    drawn = lab.labels.tolist()
    lab.restaurants[0].move(1, 0 if drawn[1] else max(drawn) + 1)
    assert lab.labels.tolist() != drawn
    lab.back.click()
    assert lab.labels.tolist() == drawn
    assert lab.field.control.value == ""
    lab.show_partition([0, 1])
    lab.step()
    assert lab.labels[:3].tolist() == drawn
    assert lab.labels.size == 4
    assert lab.back.layout.display == "none"


def test_buttons_work_on_the_event_loop() -> None:
    async def use() -> None:
        lab = PriorLab(n=20)
        click = {name: button.click for name, button in lab.buttons.items()}
        click["Step"]()
        await lab._worker.wait()
        assert lab.labels.size == 1
        click["Fill"]()
        await lab._worker.wait()
        assert (lab.labels.size, lab.tally.n_draws) == (20, 1)
        click["Fill"]()
        await lab._worker.wait()
        assert lab.tally.n_draws == 2
        click["Draw 1000"]()
        assert lab.tally.n_draws == 1002
        lab.speed.value = float("inf")
        click["Play"]()
        while lab.tally.n_draws < 1100:
            await asyncio.sleep(0)
        click["Pause"]()
        drawn, seated = lab.tally.n_draws, lab.labels.size
        await at_rest(lab._worker)
        assert (lab.tally.n_draws, lab.labels.size) == (drawn, seated)
        click["Reset"]()
        assert (lab.tally.n_draws, lab.labels.size) == (0, 0)
        lab.close()

    asyncio.run(use())


def test_a_partition_a_frame_follows_the_number_of_guests(lab: PriorLab) -> None:
    lab.speed.value = PARTITION
    assert lab._worker.speed == 30.0
    lab.guests.value = 44
    assert lab._worker.speed == 44.0
    lab.speed.value = float("inf")
    assert lab._worker.speed is None
