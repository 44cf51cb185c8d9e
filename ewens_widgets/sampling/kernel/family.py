"""What every family of shapes offers to moves and to the driver, by the kind of its workspace.

What is done to columns of numbers is in `numbers`. Where there are categorical columns, `categories` does the
same with them besides. An operation is found by its name in the modules of the families and in `categories`:
all versions have the same arguments, and the workspace is the second one (`compiled.by_family`).

==========================  =============================================================================
`refresh`                   all statistics of the current partition and parameters, from the objects
`draw_parameters`           θ (own shapes: and ν and Σ) from its exact conditional
`log_joint`                 log posterior of the state, but for the factor V of the prior
`log_change_of_split`,      change of the log posterior by a change of the partition, which is set up:
`log_change_of_merge`,      a cluster falls into its sides, two become one, an object leaves its company
`log_change_of_detaching`
`weigh_sides`               statistics of the sides that the gathered members of a cluster are on
`make_split`, `make_merge`  carry out what was set up
`detach`, `attach`,         an object leaves its company, joins a cluster from alone, goes from one cluster
`relocate`                  to another
`tabulate`,                 weights of an object in all clusters and in a new one; what is tabulated holds
`conditional_weights`       until the partition changes
`open_sides`, `log_odds`,   a split by sequential allocation: two objects found the sides, the others have
`join_side`                 odds of joining the second
==========================  =============================================================================
"""

from collections.abc import Callable
from typing import Any

from ewens_widgets.sampling.compiled import with_categories
from ewens_widgets.sampling.kernel import categories, numbers


def _operation(name: str) -> Callable[..., Any]:
    return with_categories(getattr(numbers, name), getattr(categories, name))


refresh, draw_parameters, tabulate = numbers.refresh, numbers.draw_parameters, numbers.tabulate
log_joint: Callable[..., float] = _operation("log_joint")
log_change_of_split: Callable[..., float] = _operation("log_change_of_split")
log_change_of_merge: Callable[..., float] = _operation("log_change_of_merge")
log_change_of_detaching: Callable[..., float] = _operation("log_change_of_detaching")
weigh_sides: Callable[..., None] = _operation("weigh_sides")
make_split: Callable[..., int] = _operation("make_split")
make_merge: Callable[..., None] = _operation("make_merge")
detach: Callable[..., int] = _operation("detach")
attach: Callable[..., None] = _operation("attach")
relocate: Callable[..., None] = _operation("relocate")
conditional_weights: Callable[..., int] = _operation("conditional_weights")
open_sides: Callable[..., None] = _operation("open_sides")
log_odds: Callable[..., float] = _operation("log_odds")
join_side: Callable[..., None] = _operation("join_side")
