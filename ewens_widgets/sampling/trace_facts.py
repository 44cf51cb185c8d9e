"""What a reader wants to see first of a trace, as text and as a table."""

from html import escape
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ewens_widgets.sampling.trace import Trace

__all__ = ["facts_table", "trace_facts"]


def trace_facts(trace: "Trace") -> list[tuple[str, str]]:
    """List the names and values of the facts."""
    posterior = trace.posterior
    facts = [
        ("draws", str(len(trace))),
        ("data", f"{posterior.n_objects} objects × {posterior.n_features} features"),
        ("model", posterior.model),
        ("concentration", f"{posterior.concentration}"),
    ]
    if len(trace):
        low, middle, high = np.quantile(trace.n_clusters, [0.05, 0.5, 0.95], method="inverted_cdf")
        mode = posterior.theta_grid[int(np.argmax(trace.theta_posterior()))]
        facts += [
            ("iterations", f"{trace.iterations[0]} to {trace.iterations[-1]}"),
            ("clusters", f"{middle} (90 % of draws {low} to {high})"),
            ("theta", f"{mode:g} most probable"),
            ("best log posterior", f"{trace.log_posterior[trace.best_index]:.2f}"),
        ]
    return facts + [(f"acceptance of {name}", f"{rate:.3f}") for name, rate in trace.acceptance.items()]


def facts_table(title: str, facts: list[tuple[str, str]]) -> str:
    """Write facts as an HTML table."""
    rows = "".join(
        f"<tr><th scope='row'>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in facts
    )
    return f"<table><caption>{escape(title)}</caption><tbody>{rows}</tbody></table>"
