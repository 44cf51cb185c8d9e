"""What a chain is made from: one frozen value, the controls that show it, and the button that applies it.

`Settings` brings arguments that mean the same to equal values. So whoever changes a control and changes it
back is not asked to start anew. How long to run and what to leave out as burn-in are no part of it: they
change a running chain.
"""

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from ipywidgets import HTML, Button, VBox
from numpy.typing import ArrayLike

from ewens_widgets.datasets import Dataset
from ewens_widgets.model.posterior import check_nu_grid, default_theta_grid
from ewens_widgets.model.priors import PartitionPrior
from ewens_widgets.sampling.moves.schedule import Repeated, resolve_schedule
from ewens_widgets.sampling.sampler import Sampler
from ewens_widgets.views.base import Silence, assign
from ewens_widgets.views.explorer.model_panel import PRESETS, ModelPanel
from ewens_widgets.views.explorer.moves_panel import MovesPanel
from ewens_widgets.views.fields import Field, entry, whole_number

__all__ = ["RunPanel", "SamplerSettings", "SettingsPanel"]


@dataclass(frozen=True)
class SamplerSettings:
    """Arguments of the sampler. Equal settings and data give the same chain."""

    model: str = "II"
    shapes: str = "common"
    prior: PartitionPrior = PRESETS["paper"].prior
    alpha: float = 1.0
    theta_grid: Any = None
    nu_grid: Any = None
    moves: tuple[Repeated, ...] = ()
    initial: Any = None
    metric: str = "canonical"
    acceptance: str = "metropolis-hastings"
    seed: int | None = 0

    def __post_init__(self) -> None:
        """Bring equal settings to equal values."""
        grid: ArrayLike = default_theta_grid() if self.theta_grid is None else self.theta_grid
        object.__setattr__(self, "theta_grid", tuple(np.ravel(grid).astype(float).tolist()))
        if self.shapes == "own" or self.nu_grid is not None:
            object.__setattr__(self, "nu_grid", tuple(check_nu_grid(self.nu_grid).tolist()))
        object.__setattr__(self, "moves", resolve_schedule(self.moves or "default", self.shapes))
        if self.initial is not None and not isinstance(self.initial, str):
            object.__setattr__(self, "initial", tuple(np.ravel(self.initial).tolist()))

    def make_sampler(self, data: Dataset) -> tuple[Sampler, str]:
        """Make the sampler; return it with what it warned about."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            sampler = Sampler(
                data,
                model=self.model,
                shapes=self.shapes,
                prior=self.prior,
                alpha=self.alpha,
                theta_grid=self.theta_grid,
                nu_grid=self.nu_grid,
                moves=self.moves,
                initial=self.initial,
                metric=self.metric,
                acceptance=self.acceptance,
                seed=self.seed,
            )
        return sampler, " ".join(str(warning.message) for warning in caught)


class SettingsPanel:
    """The panels, and what has to do with both of them.

    Parameters
    ----------
    settings
        What the fields show at first.
    on_change
        Called after a change, on the thread of the message.
    on_apply
        Called when the user wants a new chain.
    """

    def __init__(
        self, settings: SamplerSettings, on_change: Callable[[], None], on_apply: Callable[[], None]
    ) -> None:
        self._on_change = on_change
        self._silence = Silence()
        self.model_box = ModelPanel()
        self.moves_box = MovesPanel()
        self.apply = Button(
            description="Start anew with these",
            tooltip="Start a new chain with these settings; the draws so far are dropped",
            button_style="warning",
            layout={"display": "none"},
        )
        self.apply.add_class("ew-apply")
        self.apply.on_click(lambda _: on_apply())
        self.notice = HTML(layout={"display": "none"})
        self.notice.add_class("ew-notice")
        self.show(settings)
        for field in self.fields.values():
            field.control.observe(self._changed, "value")

    @property
    def fields(self) -> dict[str, Field]:
        """All fields by name."""
        return {**self.model_box.fields, **self.moves_box.fields}

    def _changed(self, _: dict[str, Any]) -> None:
        if not self._silence:
            self._on_change()

    def arrange(self) -> None:
        """Show the fields that matter for what is chosen."""
        with self._silence:
            self.model_box.arrange()
            self.moves_box.arrange()

    def read(self) -> SamplerSettings:
        """Return the settings, or explain beside the field what is wrong, and raise `ValueError`."""
        try:
            model = self.model_box.read()
        except ValueError:
            # What is wrong with the moves is shown too, and not one fault after the other.
            with suppress(ValueError):
                self.moves_box.read()
            raise
        return SamplerSettings(**model, **self.moves_box.read())

    def show(self, settings: SamplerSettings) -> None:
        """Show given settings; nobody is told of a change."""
        with self._silence:
            self.model_box.show(settings)
            self.moves_box.show(settings)

    def offer(self, pending: bool) -> None:
        """Offer to start anew, or not."""
        assign(self.apply, disabled=False)
        assign(self.apply.layout, display="" if pending else "none")

    def refuse(self) -> None:
        """Let nobody start anew with what is wrong."""
        assign(self.apply, disabled=True)

    def blame(self, problem: str) -> None:
        """Explain what a sampler refused, beside the field that it speaks of; nothing: all is well."""
        is_start = "initial=" in problem or problem.startswith("initial ")
        self.fields["model"].problem = "" if is_start else problem
        self.fields["initial"].problem = problem if is_start else ""

    def say(self, notice: str) -> None:
        """Show what the sampler warned about."""
        assign(self.notice, value=escape(notice))
        assign(self.notice.layout, display="" if notice else "none")


_MOST_ITERATIONS = 10_000_000


class RunPanel(VBox):
    """Fields of iterations and burn-in, which change a running chain without starting it anew.

    Parameters
    ----------
    iterations, burn_in
        What the fields show at first.
    on_change
        Called after a change, on the thread of the message.
    """

    def __init__(self, iterations: int, burn_in: int, on_change: Callable[[], None]) -> None:
        self.iterations = entry(
            "iterations",
            str(iterations),
            whole_number("iterations", 1, _MOST_ITERATIONS),
            "ew-iterations",
            "Playing stops after so many iterations; more can be added at any time",
        )
        self.burn_in = entry(
            "burn-in",
            str(burn_in),
            whole_number("burn-in", 0, _MOST_ITERATIONS),
            "ew-burn-in",
            "So many first iterations are left out of averages, tree and heatmap",
        )
        super().__init__((self.iterations, self.burn_in))
        self._silence = Silence()
        self._on_change = on_change
        for field in (self.iterations, self.burn_in):
            field.control.observe(self._changed, "value")

    def _changed(self, _: dict[str, Any]) -> None:
        if not self._silence:
            self._on_change()

    def read(self) -> tuple[int, int]:
        """Iterations and burn-in; what is wrong is explained beside the field, and raises `ValueError`."""
        iterations, burn_in = self.iterations.read(), self.burn_in.read()
        if burn_in >= iterations:
            self.burn_in.problem = f"burn-in must be below the {iterations} iterations; got {burn_in}."
            raise ValueError(self.burn_in.problem)
        return iterations, burn_in

    def show(self, iterations: int, burn_in: int) -> None:
        """Show given values; nobody is told of a change."""
        with self._silence:
            self.iterations.control.value = str(iterations)
            self.burn_in.control.value = str(burn_in)
