"""Views without a browser: messages are counted at a stand-in for the connection."""

from collections.abc import Iterator
from typing import Any

import comm
import pytest
from comm.base_comm import BaseComm
from ipywidgets import Widget
from views.chains import Chain, Wire

from ewens_widgets.views import SharedState


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    wire = Wire()

    class CountingComm(BaseComm):
        def publish_msg(
            self,
            msg_type: str,
            data: dict[str, Any] | None = None,
            metadata: object = None,  # noqa: ARG002 - comes before the buffers
            buffers: list[bytes] | None = None,
            **_: object,
        ) -> None:
            if msg_type == "comm_open":
                wire.opened.append(self.comm_id)
            if msg_type == "comm_msg" and data is not None:
                wire.messages.append((self.comm_id, data))
                wire.buffers += buffers or []

    monkeypatch.setattr(comm, "create_comm", CountingComm)
    yield wire
    Widget.close_all()


@pytest.fixture
def chain() -> Chain:
    return Chain()


@pytest.fixture
def shared(wire: Wire, chain: Chain) -> SharedState:
    shared = SharedState()
    shared.prepare(chain.posterior)
    return shared
