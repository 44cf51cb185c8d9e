"""The operations of `family` on columns of numbers, by the kind of the workspace."""

from collections.abc import Callable
from typing import Any

from ewens_widgets.sampling.compiled import by_family
from ewens_widgets.sampling.kernel import common_family, common_weights, own_draws, own_family, scatter
from ewens_widgets.sampling.kernel.workspace import OwnWorkspace, Workspace


def _operation(name: str, common: Any = common_family, own: Any = own_family) -> Callable[..., Any]:  # noqa: ANN401
    return by_family({Workspace: getattr(common, name), OwnWorkspace: getattr(own, name)})


refresh: Callable[..., None] = _operation("refresh", scatter)
draw_parameters: Callable[..., None] = _operation("draw_parameters", own=own_draws)
log_joint: Callable[..., float] = _operation("log_joint", own=own_draws)
log_change_of_split: Callable[..., float] = _operation("log_change_of_split")
log_change_of_merge: Callable[..., float] = _operation("log_change_of_merge")
log_change_of_detaching: Callable[..., float] = _operation("log_change_of_detaching")
weigh_sides: Callable[..., None] = _operation("weigh_sides")
make_split: Callable[..., int] = _operation("make_split")
make_merge: Callable[..., None] = _operation("make_merge")
detach: Callable[..., int] = _operation("detach")
attach: Callable[..., None] = _operation("attach")
relocate: Callable[..., None] = _operation("relocate")
tabulate: Callable[..., None] = _operation("tabulate", common_weights)
conditional_weights: Callable[..., int] = _operation("conditional_weights", common_weights)
open_sides: Callable[..., None] = _operation("open_sides")
log_odds: Callable[..., float] = _operation("log_odds")
join_side: Callable[..., None] = _operation("join_side")
