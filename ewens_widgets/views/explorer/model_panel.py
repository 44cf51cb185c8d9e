"""Controls of the model and its priors."""

from typing import TYPE_CHECKING, Any, NamedTuple

from ipywidgets import VBox

from ewens_widgets.model.posterior import ShapesName, check_nu_grid, default_nu_grid, default_theta_grid
from ewens_widgets.model.priors import Ewens, FiniteMixture, PartitionPrior
from ewens_widgets.views.base import assign
from ewens_widgets.views.fields import (
    Field,
    button_choice,
    choice,
    entry,
    parse_grid,
    parse_positive,
    read_shown,
    show_only,
)
from ewens_widgets.views.prior_chooser import PriorChooser, kind_of

if TYPE_CHECKING:
    from ewens_widgets.views.explorer.settings import SamplerSettings

__all__ = ["PRESETS", "ModelPanel", "ModelPreset"]

_MODELS = [
    ("I", "I", "Model I: one scale for all columns, and rotations"),
    ("II", "II", "Model II: a scale for each column"),
    ("III", "III", "Model III: all linear maps"),
]
_INVARIANCES = {
    "I": "Results do not change when the data are shifted, rotated, or all columns scaled alike.",
    "II": "Results do not change when the data are shifted, or each column is scaled.",
    "III": "Results do not change when the data are shifted, or mapped linearly.",
}
_SHAPES: list[tuple[str, ShapesName]] = [("one for all", "common"), ("each its own", "own")]
_DEFAULT_GRIDS = {"grid": "2^-3 … 2^10", "nu": "2^1 … 2^8"}
_MIXED = "mixed"


class ModelPreset(NamedTuple):
    """Shapes and prior that go well together.

    Attributes
    ----------
    title
        What the menu says.
    shapes, prior
        What it stands for. Another prior of the same kind is the same preset, with other numbers.
    purpose
        What it is for, in a sentence.
    """

    title: str
    shapes: ShapesName
    prior: PartitionPrior
    purpose: str


PRESETS = {
    "paper": ModelPreset(
        "the paper's",
        "common",
        Ewens(1.0),
        "All clusters have one shape; the number of clusters grows with n.",
    ),
    "own": ModelPreset(
        "own shapes",
        "own",
        FiniteMixture(),
        "Each cluster has a shape of its own, and their number is the question.",
    ),
}
"""Combinations that are offered by a name."""


def _make_fields() -> dict[str, Field]:
    presets = [(preset.title, name) for name, preset in PRESETS.items()]
    return {
        "preset": choice(
            "preset",
            [*presets, ("as chosen below", _MIXED)],
            "paper",
            "ew-preset",
            "Shapes and prior that go well together",
            " ",
        ),
        "model": button_choice(
            "model",
            _MODELS,
            "II",
            "ew-model",
            "Which changes of the data leave the clusters as they are",
            _INVARIANCES["II"],
        ),
        "shapes": choice(
            "shapes",
            _SHAPES,
            "common",
            "ew-shapes",
            "Whether clusters share one covariance, or each has its own, pooled towards a common one",
        ),
        "alpha": entry(
            "α", "1", parse_positive("α"), "ew-alpha", "Shape of θ's prior: larger α keeps θ nearer to 1"
        ),
        "grid": entry(
            "θ grid",
            _DEFAULT_GRIDS["grid"],
            parse_grid,
            "ew-grid",
            "Values of θ, the spread between clusters over that within them: powers of 2, or numbers",
        ),
        "nu": entry(
            "ν grid",
            _DEFAULT_GRIDS["nu"],
            lambda text: parse_grid(text, check_nu_grid),
            "ew-nu-grid",
            "Values of ν, the likeness of own shapes: the larger, the more alike; powers of 2, or numbers",
        ),
    }


class ModelPanel(VBox):
    """Fields of model, shapes, prior, α and the grids of θ and ν."""

    def __init__(self) -> None:
        self._own_fields = _make_fields()
        self._preset = "paper"
        self.prior = PriorChooser(PRESETS["paper"].prior)
        order = ("preset", "model", "shapes", "prior", "alpha", "grid", "nu")
        super().__init__(tuple(self.prior if name == "prior" else self._own_fields[name] for name in order))
        self.add_class("ew-model-box")

    @property
    def fields(self) -> dict[str, Field]:
        """All fields by name, those of the prior too."""
        return {**self._own_fields, **self.prior.fields}

    def arrange(self) -> None:
        """Do as the preset says, if another one was chosen; show the fields that matter for what is chosen.

        Controls may be set here: whoever observes them should not take that for a change by the user.
        """
        chosen = self._own_fields["preset"].control.value
        if chosen != self._preset and chosen in PRESETS:
            self._own_fields["shapes"].control.value = PRESETS[chosen].shapes
            self.prior.show(PRESETS[chosen].prior)
        self.prior.arrange()
        self._name_preset()
        self._own_fields["model"].help_text = _INVARIANCES[self._own_fields["model"].control.value]
        has_own = self._own_fields["shapes"].control.value == "own"
        show_only(self._own_fields, set(self._own_fields) - (set() if has_own else {"nu"}))

    def _name_preset(self) -> None:
        """Show which preset shapes and prior are, whoever has chosen them."""
        shapes, kind = self._own_fields["shapes"].control.value, self.prior.chosen
        names = [
            name
            for name, preset in PRESETS.items()
            if preset.shapes == shapes and kind_of(preset.prior) is kind
        ]
        self._preset = names[0] if names else _MIXED
        assign(self._own_fields["preset"].control, value=self._preset)
        self._own_fields["preset"].help_text = PRESETS[self._preset].purpose if names else ""

    def read(self) -> dict[str, Any]:
        """Arguments of `SamplerSettings`; a wrong value is explained beside its field, and raises."""
        problems: list[str] = []
        values: dict[str, Any] = {}
        prior = None
        try:
            prior = self.prior.read()
        except ValueError as error:
            problems.append(str(error))
        try:
            values = read_shown(self._own_fields)
        except ValueError as error:
            problems.append(str(error))
        if problems:
            raise ValueError(" ".join(problems))
        return {
            "model": values["model"],
            "shapes": values["shapes"],
            "prior": prior,
            "alpha": values["alpha"],
            "theta_grid": values["grid"],
            "nu_grid": values.get("nu"),
        }

    def show(self, settings: "SamplerSettings") -> None:
        """Show given settings."""
        grids = {"grid": (settings.theta_grid, default_theta_grid())}
        if settings.nu_grid is not None:
            grids["nu"] = (settings.nu_grid, default_nu_grid())
        texts = {"model": settings.model, "shapes": settings.shapes, "alpha": f"{settings.alpha:g}"}
        for name, (grid, usual) in grids.items():
            is_usual = grid == tuple(usual.tolist())
            texts[name] = _DEFAULT_GRIDS[name] if is_usual else ", ".join(map(repr, grid))
        for name, text in texts.items():
            self._own_fields[name].control.value = text
        self.prior.show(settings.prior)
        self._name_preset()
        self.arrange()
