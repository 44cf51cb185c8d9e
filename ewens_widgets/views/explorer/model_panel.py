"""Controls of the model and its priors."""

from typing import TYPE_CHECKING, Any

from ipywidgets import Checkbox, VBox

from ewens_widgets.model.posterior import default_theta_grid
from ewens_widgets.model.priors.ewens import Gamma
from ewens_widgets.views.fields import Field, choice, entry, parse_grid, parse_positive, read_shown, show_only

if TYPE_CHECKING:
    from ewens_widgets.views.explorer.settings import SamplerSettings

__all__ = ["ModelPanel"]

_MODELS = [("I: one scale", "I"), ("II: column scales", "II"), ("III: linear maps", "III")]
_DEFAULT_GRID = "2^-3 … 2^10"


def _make_fields() -> dict[str, Field]:
    learn = Checkbox(
        description="learn λ", indent=False, tooltip="Give λ a Gamma prior and draw it along with the rest"
    )
    return {
        "model": choice(
            "model",
            _MODELS,
            "II",
            "ew-model",
            "Which changes of the data leave the clusters as they are",
            "Results do not change when the data are shifted, or changed in this way.",
        ),
        "concentration": entry(
            "λ",
            "1",
            parse_positive("λ"),
            "ew-lambda",
            "Concentration of the Ewens prior, a positive number",
            "Larger λ: more and smaller clusters are expected.",
        ),
        "learn": Field(learn, bool, "ew-learn"),
        "shape": entry("shape", "1", parse_positive("shape"), "ew-shape", "Shape of λ's Gamma prior"),
        "rate": entry(
            "rate",
            "1",
            parse_positive("rate"),
            "ew-rate-field",
            "Rate of λ's Gamma prior; its mean is shape / rate",
        ),
        "alpha": entry(
            "α", "1", parse_positive("α"), "ew-alpha", "Shape of θ's prior: larger α keeps θ nearer to 1"
        ),
        "grid": entry(
            "θ grid",
            _DEFAULT_GRID,
            parse_grid,
            "ew-grid",
            "Values of θ, the spread between clusters over that within them: powers of 2, or numbers",
        ),
    }


class ModelPanel(VBox):
    """Fields of model, λ, α and the grid of θ."""

    def __init__(self) -> None:
        self.fields = _make_fields()
        super().__init__(tuple(self.fields.values()))
        self.add_class("ew-model-box")

    def arrange(self) -> None:
        """Show the fields that matter for what is chosen."""
        hidden = {"concentration"} if self.fields["learn"].control.value else {"shape", "rate"}
        show_only(self.fields, set(self.fields) - hidden)

    def read(self) -> dict[str, Any]:
        """Arguments of `SamplerSettings`; a wrong value is explained beside its field, and raises."""
        values = read_shown(self.fields)
        learns = values["learn"]
        return {
            "model": values["model"],
            "concentration": Gamma(values["shape"], values["rate"]) if learns else values["concentration"],
            "alpha": values["alpha"],
            "theta_grid": values["grid"],
        }

    def show(self, settings: "SamplerSettings") -> None:
        """Show given settings."""
        texts: dict[str, Any] = {"model": settings.model, "alpha": f"{settings.alpha:g}"}
        concentration = settings.concentration
        texts["learn"] = isinstance(concentration, Gamma)
        if isinstance(concentration, Gamma):
            texts |= {"shape": f"{concentration.shape:g}", "rate": f"{concentration.rate:g}"}
        else:
            texts["concentration"] = f"{concentration:g}"
        is_default = settings.theta_grid == tuple(default_theta_grid().tolist())
        texts["grid"] = _DEFAULT_GRID if is_default else ", ".join(map(repr, settings.theta_grid))
        for name, text in texts.items():
            self.fields[name].control.value = text
        self.arrange()
