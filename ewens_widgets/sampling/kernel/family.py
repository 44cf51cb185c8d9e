"""What every family of shapes offers to moves and to the driver, by the kind of its workspace.

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

from ewens_widgets.sampling.compiled import by_family
from ewens_widgets.sampling.kernel import common_family, common_weights, own_draws, own_family, scatter
from ewens_widgets.sampling.kernel.workspace import OwnWorkspace, Workspace

__all__ = [
    "attach",
    "conditional_weights",
    "detach",
    "draw_parameters",
    "join_side",
    "log_change_of_detaching",
    "log_change_of_merge",
    "log_change_of_split",
    "log_joint",
    "log_odds",
    "make_merge",
    "make_split",
    "open_sides",
    "refresh",
    "relocate",
    "tabulate",
    "weigh_sides",
]

refresh: Callable[..., None] = by_family({Workspace: scatter.refresh, OwnWorkspace: own_family.refresh})
draw_parameters: Callable[..., None] = by_family(
    {Workspace: common_family.draw_parameters, OwnWorkspace: own_draws.draw_parameters}
)
log_joint: Callable[..., float] = by_family(
    {Workspace: common_family.log_joint, OwnWorkspace: own_draws.log_joint}
)
log_change_of_split: Callable[..., float] = by_family(
    {Workspace: common_family.log_change_of_split, OwnWorkspace: own_family.log_change_of_split}
)
log_change_of_merge: Callable[..., float] = by_family(
    {Workspace: common_family.log_change_of_merge, OwnWorkspace: own_family.log_change_of_merge}
)
log_change_of_detaching: Callable[..., float] = by_family(
    {Workspace: common_family.log_change_of_detaching, OwnWorkspace: own_family.log_change_of_detaching}
)
weigh_sides: Callable[..., None] = by_family(
    {Workspace: common_family.weigh_sides, OwnWorkspace: own_family.weigh_sides}
)
make_split: Callable[..., int] = by_family(
    {Workspace: common_family.make_split, OwnWorkspace: own_family.make_split}
)
make_merge: Callable[..., None] = by_family(
    {Workspace: common_family.make_merge, OwnWorkspace: own_family.make_merge}
)
detach: Callable[..., int] = by_family({Workspace: common_family.detach, OwnWorkspace: own_family.detach})
attach: Callable[..., None] = by_family({Workspace: common_family.attach, OwnWorkspace: own_family.attach})
relocate: Callable[..., None] = by_family(
    {Workspace: common_family.relocate, OwnWorkspace: own_family.relocate}
)
tabulate: Callable[..., None] = by_family(
    {Workspace: common_weights.tabulate, OwnWorkspace: own_family.tabulate}
)
conditional_weights: Callable[..., int] = by_family(
    {Workspace: common_weights.conditional_weights, OwnWorkspace: own_family.conditional_weights}
)
open_sides: Callable[..., None] = by_family(
    {Workspace: common_family.open_sides, OwnWorkspace: own_family.open_sides}
)
log_odds: Callable[..., float] = by_family(
    {Workspace: common_family.log_odds, OwnWorkspace: own_family.log_odds}
)
join_side: Callable[..., None] = by_family(
    {Workspace: common_family.join_side, OwnWorkspace: own_family.join_side}
)
