"""Where tables and guests are drawn."""

import numpy as np
import pytest

from ewens_widgets import ewens
from ewens_widgets.views.prior_lab.restaurant import HEIGHT, WIDTH, SeatingPlan


@pytest.mark.parametrize(
    ("n", "concentration"), [(8, 1.0), (50, 1.0), (50, 60.0), (1000, 100.0), (1000, 5.0)]
)
def test_tables_fit_and_do_not_overlap(n: int, concentration: float) -> None:
    labels = ewens.sample(n, concentration, np.random.default_rng(0))
    plan = SeatingPlan(labels, n)
    assert np.all(plan.centres - plan.radii[:, None] > 0.0)
    assert np.all(plan.centres + plan.radii[:, None] < [WIDTH, HEIGHT])
    distances = np.hypot(*(plan.centres[:, None] - plan.centres[None]).transpose(2, 0, 1))
    reach = plan.radii[:, None] + plan.radii[None]
    np.fill_diagonal(distances, np.inf)
    assert np.all(distances > reach)
    guests = plan.guests()
    assert np.all(np.hypot(*(guests - plan.centres[labels]).T) <= plan.radii[labels])


def test_seated_guests_do_not_move_when_others_come() -> None:
    labels = np.array([0, 0, 1, 0, 1, 2])
    before, after = SeatingPlan(labels[:5], 6), SeatingPlan(labels, 6)
    np.testing.assert_allclose(before.guests(), after.guests()[:5])


def test_the_table_at_a_place_is_found() -> None:
    plan = SeatingPlan(np.array([0, 0, 1]), 3)
    for table in range(3):
        assert plan.table_at(*(plan.centres[table] + 5.0)) == table
    assert plan.table_at(WIDTH - 1.0, 1.0) == 2, "nowhere near a table is a new table"
