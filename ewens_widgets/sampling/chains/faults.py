"""What can go wrong with a run, told so that nothing is lost."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ewens_widgets.sampling.chains.result import Chains
    from ewens_widgets.sampling.trace import Trace

__all__ = ["ChainsError", "failed_chains_error"]


class ChainsError(RuntimeError):
    """A run of several chains could not be finished.

    Attributes
    ----------
    chains
        The draws of all chains that did not fail, as far as they got.
    failed
        The draws of each chain that failed up to then, by its number.
    """

    def __init__(
        self, message: str, chains: "Chains | None" = None, failed: "Mapping[int, Trace] | None" = None
    ) -> None:
        super().__init__(message)
        self.chains = chains
        self.failed = dict(failed or {})


def failed_chains_error(
    reasons: Mapping[int, str], chains: "Chains", failed: "Mapping[int, Trace]", way_out: str
) -> ChainsError:
    """Name the chains that failed, why, and what is left."""
    told = "; ".join(f"chain {number}: {reason}" for number, reason in reasons.items())
    which = "a chain" if len(reasons) == 1 else f"{len(reasons)} chains"
    return ChainsError(
        f"{which} could not be finished ({told}). The draws of the others are in the attribute .chains of "
        f"this error. {way_out}",
        chains,
        failed,
    )
