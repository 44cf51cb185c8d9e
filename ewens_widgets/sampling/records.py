"""From the records of a block to events and to the recorder."""

from collections.abc import Iterator

import numpy as np

from ewens_widgets.model.posterior import Posterior
from ewens_widgets.partition import canonical_labels
from ewens_widgets.sampling.columns import read_only
from ewens_widgets.sampling.event import Event, MoveCount
from ewens_widgets.sampling.kernel.advance import Records
from ewens_widgets.sampling.moves.outcome import ACCEPTED, PROPOSED, Outcome
from ewens_widgets.sampling.recorder import Recorder

__all__ = ["events_of", "record_block", "with_proposal"]


def events_of(
    records: Records, names: tuple[str, ...], posterior: Posterior, first_iteration: int
) -> Iterator[Event]:
    """Yield an event for each record; their arrays are read-only views of the block's."""
    # Whole columns become Python numbers at once: much cheaper than one element at a time.
    theta_index = records.theta_index.tolist()
    theta = posterior.theta_grid[records.theta_index].tolist()
    n_clusters = records.n_clusters.tolist()
    log_posterior = records.log_posterior.tolist()
    concentration = records.concentration.tolist()
    proposals = records.proposals.tolist()
    acceptances = records.acceptances.tolist()
    labels, weights = read_only(records.labels), read_only(records.theta_weights)
    for row in range(len(theta)):
        yield Event(
            first_iteration + row,
            theta[row],
            theta_index[row],
            weights[row],
            labels[row],
            n_clusters[row],
            log_posterior[row],
            concentration[row],
            tuple(map(MoveCount, names, proposals[row], acceptances[row])),
        )


def with_proposal(event: Event, outcome: Outcome) -> Event:
    """Add what the single Metropolis move of this iteration proposed, if it proposed anything."""
    if not outcome.flags[PROPOSED]:
        return event
    return event._replace(
        proposed_labels=read_only(canonical_labels(outcome.labels)),
        accepted=bool(outcome.flags[ACCEPTED]),
        log_ratio=float(outcome.log_ratio[0]),
    )


def record_block(recorder: Recorder, records: Records, first_iteration: int, thin: int) -> None:
    """Append a block to the recorder."""
    rows = records.theta_index.size
    recorder.append_block(
        iterations=first_iteration + thin * np.arange(rows),
        labels=records.labels,
        theta_index=records.theta_index,
        theta_weights=records.theta_weights,
        log_posterior=records.log_posterior,
        concentration=records.concentration,
        proposals=records.proposals,
        acceptances=records.acceptances,
    )
