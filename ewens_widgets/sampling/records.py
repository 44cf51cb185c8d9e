"""From the records of a block to events and to the recorder."""

from collections.abc import Iterator, Sequence
from itertools import count, repeat

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
    # Whole columns become Python numbers at once, and columns become rows by `zip`: much cheaper than taking
    # one element at a time. An event must cost little even beside an iteration of a few microseconds.
    proposals, acceptances = records.proposals.T.tolist(), records.acceptances.T.tolist()
    columns = zip(
        count(first_iteration),
        posterior.theta_grid[records.theta_index].tolist(),
        records.theta_index.tolist(),
        read_only(records.theta_weights),
        read_only(records.labels),
        records.n_clusters.tolist(),
        records.log_posterior.tolist(),
        records.concentration.tolist(),
        zip(*map(_move_counts, names, proposals, acceptances), strict=True),
        repeat(None),  # what was proposed is known of stepped events only
        repeat(None),
        repeat(None),
        strict=False,  # some columns have no end
    )
    return map(Event._make, columns)


def _move_counts(name: str, proposals: Sequence[int], acceptances: Sequence[int]) -> Iterator[MoveCount]:
    return map(MoveCount._make, zip(repeat(name), proposals, acceptances, strict=False))


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
