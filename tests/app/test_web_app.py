"""`ewens-widgets app` without a server (tests/browser starts one): its arguments, and who gets a kernel."""

import asyncio
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import pytest
from chain_runs import LOOPS, wrap_loops
from jupyter_client.session import Session
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
from tornado.web import HTTPError
from voila.execute import VoilaExecutor

from ewens_widgets import app
from ewens_widgets.app import command_line, server
from ewens_widgets.app.server import (
    OwnKernelSpecs,
    VisitorKernels,
    server_settings,
    write_page,
)
from ewens_widgets.app.visitor import SHORT_OF_MEMORY


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the server would have been started with; nothing is compiled and nothing listens."""
    started: list[dict[str, Any]] = []

    class FakeServer:
        def __init__(self, **keywords: object) -> None:
            started.append(
                keywords | {"code": nbformat.read(str(keywords["notebook_path"]), 4).cells[0].source}
            )

        def initialize(self, argv: list[str]) -> None:
            assert argv == []

        def start(self) -> None:
            started[-1]["is_started"] = True

    monkeypatch.setattr("ewens_widgets.app.server.ExplorerServer", FakeServer)
    monkeypatch.setattr(command_line, "_prepare", lambda _: None)
    return started


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the command sets for its processes is not left to other tests."""
    for name in command_line._ONE_THREAD:
        monkeypatch.setenv(name, "1")


def test_the_options_reach_the_server(servers: list[dict[str, Any]]) -> None:
    options = ["--port", "8899", "--no-browser", "--visitors", "3", "--idle", "0.5", "--data", "half-moons"]
    assert app.main(["app", *options]) == 0
    (server,) = servers
    assert server["is_started"]
    assert server["port"] == 8899
    assert server["open_browser"] is False
    assert "half-moons" in server["code"]
    kernels = server["config"].VisitorKernels
    assert kernels.visitors == 3
    assert kernels.cull_idle_timeout == 30
    # The notebook lay in a folder of its own, which is gone.
    assert not Path(server["notebook_path"]).parent.exists()


def test_the_defaults_open_a_browser_for_ten_visitors(servers: list[dict[str, Any]]) -> None:
    assert app.main(["app"]) == 0
    assert servers[0]["open_browser"] is True
    assert servers[0]["config"].VisitorKernels.visitors == 10
    assert "unit square" in servers[0]["code"]


def test_no_code_is_shown_and_no_file_is_served() -> None:
    settings = server_settings(visitors=1, idle_minutes=1.0, theme="dark").VoilaConfiguration
    assert settings.file_allowlist == []
    assert settings.allow_template_override == "NO"
    assert settings.theme == "dark"
    assert settings.get("strip_sources", True)


def test_late_outputs_are_waited_for(tmp_path: Path) -> None:
    # With many visitors at once they come minutes late; by default Voilà drops them after four seconds, and
    # shows an empty page.
    notebook = nbformat.read(write_page(tmp_path, "unit square"), 4)
    executor = VoilaExecutor(notebook, config=server_settings(visitors=1, idle_minutes=1.0, theme="light"))
    assert executor.iopub_timeout >= 120
    assert executor.startup_timeout >= 120


def test_the_page_shows_an_explorer(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    code = nbformat.read(write_page(tmp_path, "unit square"), 4).cells[0].source
    *lines, last = code.splitlines()
    exec("\n".join(lines), names)  # noqa: S102 - our own code
    box = eval(last, names)  # noqa: S307 - the same
    assert repr(box.children[0]) == "Explorer('unit square', model II, iteration 0 of 3000)"
    box.children[0].close()


def test_unknown_data_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["app", "--data", "iris"]) == 1
    message = capsys.readouterr().err
    assert "There is no data set 'iris'" in message
    assert "'wine'" in message


def test_an_environment_that_cannot_run_it_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "Traceback …\nModuleNotFoundError: No module named 'bqplot'\n"
    result = SimpleNamespace(returncode=1, stderr=said)
    monkeypatch.setattr(command_line.subprocess, "run", lambda *_, **__: result)
    assert app.main(["app"]) == 1
    message = capsys.readouterr().err
    assert "No module named 'bqplot'" in message
    assert "-m ewens_widgets.app compile --data" in message


def test_precompiling_runs_both_ways_of_advancing(monkeypatch: pytest.MonkeyPatch) -> None:
    called = set()

    def noted(loop: Callable[..., object]) -> Callable[..., object]:
        def call(*given: object) -> object:
            called.add(loop)
            return loop(*given)

        return call

    loops = {getattr(module, name) for module, name in LOOPS}
    wrap_loops(monkeypatch, noted)
    assert app.main(["compile"]) == 0
    assert called == loops


def test_kernels_are_those_of_this_environment_and_keep_no_history() -> None:
    specs = OwnKernelSpecs(parent=server.ExplorerServer(megabytes=1234))
    assert set(specs.find_kernel_specs()) == {"python3"}
    argv = specs.get_kernel_spec("python3").argv
    assert argv[:4] == [sys.executable, "-m", "ewens_widgets.app.visitor", "1234"]
    assert "--HistoryManager.enabled=False" in argv


class Provisioner:
    """Of a process that has ended for want of memory."""

    async def poll(self) -> int:
        return SHORT_OF_MEMORY


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> VisitorKernels:
    """Two places; a kernel takes two turns of the event loop to start and five to stop, and is no process.

    A page connects as soon as its kernel has started.

    Time passes only while somebody waits for a place.
    """
    clock = [100.0]

    async def pass_time(seconds: float) -> None:
        clock[0] += seconds
        await asyncio.sleep(0)

    async def start(self: VisitorKernels, *, kernel_id: str, **_: object) -> str:
        await asyncio.sleep(0)
        self._kernels[kernel_id] = SimpleNamespace(last_activity=datetime.now(UTC), provisioner=Provisioner())
        self._kernel_connections[kernel_id] = 0
        if self.pages_connect:
            self.notify_connect(kernel_id)
        await asyncio.sleep(0)
        return kernel_id

    async def shut_down(self: VisitorKernels, kernel_id: str, **_: object) -> None:
        for _ in range(5):
            await asyncio.sleep(0)
        del self._kernels[kernel_id]

    async def keep(self: VisitorKernels, kernel_id: str) -> None:
        pass

    monkeypatch.setattr(server, "time", SimpleNamespace(monotonic=lambda: clock[0], time=lambda: clock[0]))
    monkeypatch.setattr(
        server, "asyncio", SimpleNamespace(sleep=pass_time, Future=asyncio.Future, wait=asyncio.wait)
    )
    monkeypatch.setattr(AsyncMappingKernelManager, "start_kernel", start)
    monkeypatch.setattr(AsyncMappingKernelManager, "shutdown_kernel", shut_down)
    monkeypatch.setattr(AsyncMappingKernelManager, "cull_kernel_if_idle", keep)
    made = VisitorKernels(visitors=2, patience=0.3)
    made.pages_connect = True
    return made


def test_visitors_who_come_at_once_get_as_many_kernels_as_there_are_places(kernels: VisitorKernels) -> None:
    async def arrive() -> list[Any]:
        return await asyncio.gather(*(kernels.start_kernel() for _ in range(5)), return_exceptions=True)

    outcomes = asyncio.run(arrive())
    assert sum(isinstance(outcome, str) for outcome in outcomes) == 2
    refused = [outcome for outcome in outcomes if not isinstance(outcome, str)]
    assert all(isinstance(error, HTTPError) and error.status_code == 503 for error in refused)
    assert "it has room for 2" in str(refused[0])
    assert kernels.taken == 2


def test_a_page_that_is_loaded_again_keeps_its_place(kernels: VisitorKernels) -> None:
    async def reload() -> str:
        first, _ = [await kernels.start_kernel() for _ in range(2)]
        # The new page is asked for before the old one has said goodbye.
        again = asyncio.create_task(kernels.start_kernel())
        await asyncio.sleep(0)
        await kernels.shutdown_kernel(first)
        return await again

    assert isinstance(asyncio.run(reload()), str)
    assert kernels.taken == 2


def test_a_place_is_free_while_its_kernel_is_being_stopped(kernels: VisitorKernels) -> None:
    async def leave() -> int:
        first, _ = [await kernels.start_kernel() for _ in range(2)]
        stopping = asyncio.create_task(kernels.shutdown_kernel(first))
        await asyncio.sleep(0)
        taken = kernels.taken
        await stopping
        return taken

    assert asyncio.run(leave()) == 1
    assert kernels.taken == 1


@pytest.mark.parametrize("is_leaving", [True, False])
def test_a_page_that_closes_while_its_kernel_is_being_stopped_leaves_no_sockets(
    kernels: VisitorKernels, is_leaving: bool
) -> None:
    closed: list[str] = []
    channels = {
        name: SimpleNamespace(
            close=lambda name=name: closed.append(name),
            on_recv=lambda _: None,
            socket=SimpleNamespace(closed=False),
        )
        for name in ("shell", "iopub")
    }

    async def leave() -> None:
        first, _ = [await kernels.start_kernel() for _ in range(2)]
        stopping = asyncio.create_task(kernels.shutdown_kernel(first)) if is_leaving else None
        await asyncio.sleep(0)
        kernels.start_buffering(first, "session", channels)
        if stopping is not None:
            await stopping

    asyncio.run(leave())
    # One whose connection was lost may come back.
    assert closed == (["shell", "iopub"] if is_leaving else [])
    assert len(kernels._kernel_buffers) == (0 if is_leaving else 1)


def test_a_kernel_that_does_not_start_leaves_its_place(
    kernels: VisitorKernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(self: VisitorKernels, **_: object) -> str:
        raise RuntimeError("no memory")

    monkeypatch.setattr(AsyncMappingKernelManager, "start_kernel", fail)
    with pytest.raises(RuntimeError, match="no memory"):
        asyncio.run(kernels.start_kernel())
    assert kernels.taken == 0


@pytest.mark.parametrize("connections", [0, 1, None])
@pytest.mark.parametrize(("silent", "is_long"), [(30, False), (61, True), (3600, True)])
def test_a_kernel_without_a_page_is_stopped_after_a_minute(
    kernels: VisitorKernels, connections: int | None, silent: int, is_long: bool
) -> None:
    async def cull() -> None:
        kernels.pages_connect = connections is not None  # None: a page that never came
        kernel_id = await kernels.start_kernel()
        kernels._kernels[kernel_id].last_activity -= timedelta(seconds=silent)
        kernels._kernel_connections[kernel_id] = connections or 0
        await kernels.cull_kernel_if_idle(kernel_id)

    asyncio.run(cull())
    assert kernels.taken == (connections == 1 or not is_long)


def test_half_of_the_places_are_for_pages_that_have_not_connected(kernels: VisitorKernels) -> None:
    async def arrive() -> None:
        kernels.visitors, kernels.pages_connect = 4, False
        first, _ = [await kernels.start_kernel() for _ in range(2)]
        third = asyncio.create_task(kernels.start_kernel())
        for _ in range(20):
            await asyncio.sleep(0)
        assert not third.done()
        assert kernels.awaited == 2
        kernels.notify_connect(first)
        assert await third
        with pytest.raises(HTTPError, match="it has room for 4"):
            await kernels.start_kernel()
        assert kernels.taken == 3

    asyncio.run(arrive())


def test_a_page_that_was_sent_and_did_not_connect_makes_room(kernels: VisitorKernels) -> None:
    async def arrive() -> None:
        kernels.visitors, kernels.pages_connect = 4, False
        first, second = [await kernels.start_kernel() for _ in range(2)]
        kernels.note_sent(first)
        third = await kernels.start_kernel()
        while first in kernels:
            await asyncio.sleep(0)
        assert {second, third} == set(kernels.list_kernel_ids())

    asyncio.run(arrive())


def test_a_request_that_was_given_up_while_it_waited_starts_nothing(kernels: VisitorKernels) -> None:
    async def arrive() -> None:
        kernels.visitors, kernels.pages_connect = 4, False
        held = [await kernels.start_kernel() for _ in range(2)]
        server._page.set(SimpleNamespace(is_left=True))
        with pytest.raises(HTTPError, match="given up"):
            await kernels.start_kernel()
        assert kernels.list_kernel_ids() == held

    asyncio.run(arrive())


def test_a_kernel_that_page_and_server_stop_at_once_is_stopped_once(
    kernels: VisitorKernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[str] = []

    async def stop(self: VisitorKernels, kernel_id: str, **_: bool) -> None:
        stopped.append(kernel_id)
        await asyncio.sleep(0)

    async def leave() -> None:
        kernel_id = await kernels.start_kernel()
        await asyncio.gather(kernels.shutdown_kernel(kernel_id), kernels.shutdown_kernel(kernel_id))

    monkeypatch.setattr(AsyncMappingKernelManager, "shutdown_kernel", stop)
    asyncio.run(leave())
    assert len(stopped) == 1


@pytest.mark.parametrize(("jump", "silent"), [(3.2e7, 10.0), (-3.2e7, 10.0), (0.0, 10.0), (0.0, 3700.0)])
def test_a_clock_that_jumps_ends_no_visit(
    kernels: VisitorKernels, monkeypatch: pytest.MonkeyPatch, jump: float, silent: float
) -> None:
    """Time of day and time that has passed go apart; visits end after what has passed."""
    idle: list[float] = []
    later = datetime.now(UTC) + timedelta(seconds=jump + silent)

    async def cull(self: VisitorKernels) -> None:
        idle.extend((later - kernel.last_activity).total_seconds() for kernel in self._kernels.values())

    async def visit() -> None:
        await kernels.start_kernel()
        clock = SimpleNamespace(time=lambda: 100.0 + jump + silent, monotonic=lambda: 100.0 + silent)
        monkeypatch.setattr(server, "time", clock)
        monkeypatch.setattr(server, "datetime", SimpleNamespace(now=lambda _: later))
        await kernels.cull_kernels()

    monkeypatch.setattr(AsyncMappingKernelManager, "cull_kernels", cull)
    asyncio.run(visit())
    assert idle == [pytest.approx(silent, abs=5.0)]


def test_activity_is_noted_as_the_original_does(
    kernels: VisitorKernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All kinds of messages, as answers to all kinds: the same state of the kernel, the same times."""
    session = Session(key=b"secret")
    noted: dict[str, list[object]] = {"original": [], "ours": []}

    class Stream:
        def on_recv(self, callback: Callable[[list[bytes]], None]) -> None:
            self.receive = callback

    kinds = ["status", "stream", "comm_msg", "execute_request", "comm_info_request", "kernel_info_request"]
    for who, watch in (
        ("original", AsyncMappingKernelManager.start_watching_activity),
        ("ours", VisitorKernels.start_watching_activity),
    ):
        stream = Stream()
        kernel = SimpleNamespace(
            execution_state="starting", session=session, connect_iopub=lambda stream=stream: stream
        )
        kernels._kernels["k"] = kernel
        watch(kernels, "k")
        for cause in (None, *kinds):
            for kind in kinds:
                for state in ("busy", "idle"):
                    kernel.last_activity = None
                    parent = None if cause is None else session.msg(cause)
                    message = session.msg(kind, {"execution_state": state}, parent)
                    stream.receive([b"topic", *session.serialize(message)])
                    noted[who].append((cause, kind, kernel.execution_state, kernel.last_activity is not None))
    del kernels._kernels["k"]
    assert noted["ours"] == noted["original"]
    assert len({entry[2:] for entry in noted["ours"]}) > 2
