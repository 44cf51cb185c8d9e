"""Bayesian clustering that is invariant to rotations, scales and shears of the data.

Names are resolved when they are first used, so that importing the package stays light and the sampler
library works where no widget package is installed.
"""

from importlib import import_module
from typing import Any

from ewens_widgets._version import __version__

# Where the public names live: modules that are public as such, and names with the module that defines them.
_MODULES = {
    "datasets": "datasets",
    "ewens": "model.priors.ewens",
    "moves": "sampling.moves",
    "paper": "paper",
    "plots": "analysis.plots",
    "priors": "model.priors",
}
_PLACES = {
    "analysis.agreement": ("adjusted_rand", "confusion_table", "error_rate", "variation_of_information"),
    "analysis.convergence": ("diagnose",),
    "analysis.export": ("cite", "labels_csv", "to_arviz"),
    "analysis.report": ("report",),
    "analysis.similarity": ("RunningSimilarity",),
    "estimator": ("AffineClustering",),
    "group_profile": ("profile",),
    "label_summary": ("summarize",),
    "model.checks": ("DataWarning",),
    "model.enumeration": ("exact_posterior",),
    "model.likelihood": ("log_likelihood",),
    "model.posterior": ("Posterior",),
    "model.priors.ewens": ("Gamma",),
    "model_choice": ("compare",),
    "sampling.archive": ("ArchiveError",),
    "sampling.chains.result": ("Chains", "ChainsError", "until"),
    "sampling.chains.sample": ("resume_chains", "sample_chains"),
    "sampling.draws": ("DrawTable", "Event"),
    "sampling.sampler": ("Sampler",),
    "sampling.state": ("State",),
    "sampling.trace": ("Trace",),
    "tables": ("read_table", "TableError"),
    "views.explorer.explorer": ("Explorer",),
    "views.labs.affine_lab": ("AffineLab",),
    "views.labs.chains_view": ("ChainsView",),
    "views.labs.move_inspector": ("MoveInspector",),
    "views.labs.points_lab": ("PointsLab",),
    "views.labs.prior_lab": ("PriorLab",),
    "views.programmed": ("watch",),
}
_NAMES = {name: module for module, names in _PLACES.items() for name in names}

__all__ = ["__version__", *_MODULES, *_NAMES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = import_module(f"{__name__}.{_MODULES[name]}")
    elif name in _NAMES:
        value = getattr(import_module(f"{__name__}.{_NAMES[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_NAMES})
