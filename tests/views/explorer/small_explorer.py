"""An explorer of few objects, and what a user does with it."""

import ewens_widgets as ew
from ewens_widgets.views.explorer.explorer import Explorer


def square() -> ew.datasets.Dataset:
    return ew.datasets.unit_square(per_cluster=5, seed=0)


def html_of(explorer: Explorer) -> str:
    return explorer.transport.status.value


def step(explorer: Explorer, count: int) -> None:
    explorer.player.step_sync(count)
    explorer.player.refresh()


def set_text(field: object, text: str) -> None:
    field.control.value = text  # type: ignore[attr-defined]
