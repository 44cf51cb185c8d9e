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
_NAMES = {
    "adjusted_rand": "analysis.agreement",
    "AffineClustering": "estimator",
    "AffineLab": "views.labs.affine_lab",
    "ArchiveError": "sampling.archive",
    "Chains": "sampling.chains.result",
    "ChainsError": "sampling.chains.result",
    "ChainsView": "views.labs.chains_view",
    "cite": "analysis.export",
    "compare": "model_choice",
    "confusion_table": "analysis.agreement",
    "DataWarning": "model.checks",
    "diagnose": "analysis.convergence",
    "error_rate": "analysis.agreement",
    "Event": "sampling.draws",
    "exact_posterior": "model.enumeration",
    "Explorer": "views.explorer.explorer",
    "Gamma": "model.priors.ewens",
    "labels_csv": "analysis.export",
    "log_likelihood": "model.likelihood",
    "MoveInspector": "views.labs.move_inspector",
    "PointsLab": "views.labs.points_lab",
    "Posterior": "model.posterior",
    "PriorLab": "views.labs.prior_lab",
    "profile": "group_profile",
    "read_table": "tables",
    "DrawTable": "sampling.draws",
    "report": "analysis.report",
    "resume_chains": "sampling.chains.sample",
    "RunningSimilarity": "analysis.similarity",
    "sample_chains": "sampling.chains.sample",
    "Sampler": "sampling.sampler",
    "State": "sampling.state",
    "summarize": "label_summary",
    "TableError": "tables",
    "to_arviz": "analysis.export",
    "Trace": "sampling.trace",
    "until": "sampling.chains.result",
    "variation_of_information": "analysis.agreement",
    "watch": "views.labs.watcher",
}

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
