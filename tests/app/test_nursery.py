"""The nursery: kernels are forked from one process that has everything loaded, and none outlives it."""

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from traitlets import Instance
from traitlets.config import LoggingConfigurable

from ewens_widgets.app.nursery import ForkedKernel, Nursery
from ewens_widgets.app.server import OwnKernelSpecs, VisitorKernel
from ewens_widgets.app.web_app import UNKNOWN_DATA

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="other systems have no nursery"),
]

SEEN = {
    "parent": "__import__('os').getppid()",
    "session": "__import__('os').getsid(0)",
    "niceness": "__import__('os').nice(0)",
    "folder": "__import__('os').getcwd()",
    "variable": "__import__('os').environ['FOR_THIS_VISITOR']",
    "sampler is loaded": "'ewens_widgets.sampling.driver' in __import__('sys').modules",
    "widgets of others": "len(__import__('ipywidgets').Widget.get_manager_state()['state'])",
    "widgets are heard": "'jupyter.widget' in get_ipython().kernel.comm_manager.targets",
    "watches its parent": "'ParentPollerUnix' in str(__import__('threading').enumerate())",
}


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    opened = Nursery("unit square")
    assert (opened.code, opened.said) == (0, "")
    yield opened
    opened.close()


class Kernels(LoggingConfigurable):
    """What a kernel asks of the server that it belongs to."""

    nursery = Instance(Nursery)


@asynccontextmanager
async def visit(nursery: Nursery, folder: Path) -> AsyncIterator[VisitorKernel]:
    """A kernel as the server starts it."""
    manager = VisitorKernel(
        parent=Kernels(nursery=nursery),
        kernel_name="python3",
        kernel_spec_manager=OwnKernelSpecs(),
        connection_file=str(folder / "connection.json"),
        shutdown_wait_time=60.0,  # by default a kernel that takes five seconds to end is killed
    )
    await manager.start_kernel(env={**os.environ, "FOR_THIS_VISITOR": "yes"}, cwd=str(folder))
    try:
        yield manager
    finally:
        await manager.shutdown_kernel(now=True)


async def values(manager: VisitorKernel, expressions: dict[str, str]) -> dict[str, Any]:
    client = manager.client()
    client.start_channels()
    try:
        await client.wait_for_ready()
        reply = await client.execute_interactive("", user_expressions=expressions)
    finally:
        client.stop_channels()
    answers = reply["content"]["user_expressions"]
    return {name: eval(answer["data"]["text/plain"]) for name, answer in answers.items()}  # noqa: S307 - ours


async def until_gone(process: int) -> None:
    """Wait until a process has ended; the system tells."""
    try:
        handle = os.pidfd_open(process)
    except ProcessLookupError:
        return
    try:
        await until_readable(handle)
    finally:
        os.close(handle)


async def until_readable(handle: int) -> None:
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(handle, told.set)
    try:
        await told.wait()
    finally:
        loop.remove_reader(handle)


async def exit_code(nursery: Nursery, kernel: ForkedKernel) -> int | None:
    """Wait until the nursery tells that a kernel has ended, or is itself gone."""
    while kernel.poll() is None and nursery.is_open:
        await until_readable(nursery._link.fileno())
    await until_gone(kernel.pid)
    return kernel.poll()


def test_a_kernel_is_a_process_of_its_own_with_everything_loaded(nursery: Nursery, tmp_path: Path) -> None:
    async def scene() -> tuple[int, dict[str, Any], int | None]:
        async with visit(nursery, tmp_path) as manager:
            process = manager.provisioner.process
            assert process.poll() is None
            seen = await values(manager, SEEN)
            await manager.shutdown_kernel()
            code = await exit_code(nursery, process)
        return process.pid, seen, code

    process, seen, code = asyncio.run(scene())
    assert seen == {
        "parent": nursery._process.pid,
        "session": process,
        "niceness": os.nice(0) + 5,
        "folder": str(tmp_path),
        "variable": "yes",
        "sampler is loaded": True,
        "widgets of others": 0,
        "widgets are heard": True,
        "watches its parent": True,
    }
    # ipykernel 7.4 does not always end well: its control thread may have something to say to a thread that
    # has ended. Then it aborts, or is stuck and terminated; nothing else may happen.
    assert code in {0, -signal.SIGTERM, -signal.SIGABRT}
    assert not nursery._ended, "nothing is left in the books"


def test_how_a_kernel_ended_is_told(nursery: Nursery, tmp_path: Path) -> None:
    async def scene() -> int | None:
        async with visit(nursery, tmp_path) as manager:
            process = manager.provisioner.process
            client = manager.client()
            client.start_channels()
            await client.wait_for_ready()
            client.execute("import os; os._exit(7)")
            code = await exit_code(nursery, process)
            client.stop_channels()
            return code

    assert asyncio.run(scene()) == 7


def test_the_end_of_a_kernel_that_was_killed_is_heard(nursery: Nursery, tmp_path: Path) -> None:
    async def scene() -> int | None:
        async with visit(nursery, tmp_path) as manager:
            process = manager.provisioner.process
            process.kill()
            code = await exit_code(nursery, process)
            assert not await manager.is_alive()
            process.send_signal(signal.SIGINT)  # goes nowhere
            return code

    assert asyncio.run(scene()) == -signal.SIGKILL


CONNECTIONS = "__import__('psutil').Process().net_connections('tcp')"
LISTENING = f"[one.laddr.port for one in {CONNECTIONS} if one.status == 'LISTEN']"


def test_nobody_can_take_the_place_where_a_kernel_listens(
    nursery: Nursery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = nursery.sockets
    assert folder is not None

    async def scene() -> tuple[int, int, int]:
        async with visit(nursery, tmp_path) as manager:
            ports = (await values(manager, {"ports": LISTENING}))["ports"]
            during = len([*folder.iterdir()])
        return len(set(ports)), during, len([*folder.iterdir()])

    assert folder.stat().st_mode & 0o077 == 0, "nobody else can open them"
    own, during, after = asyncio.run(scene())
    assert own <= 1, "the debugger's, who takes one that is free and tells which"
    assert (during, after) == (5, 0)
    monkeypatch.setattr(nursery, "sockets", None)
    assert asyncio.run(scene()) == (own + 5, 0, 0), "with ports they would be seen here"


@pytest.mark.parametrize(("length", "transport"), [(77, "ipc"), (78, "tcp")])
def test_where_names_of_sockets_would_be_too_long_there_are_ports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int, transport: str
) -> None:
    short = Path(tempfile.mkdtemp())
    folder = short / ("x" * (length - len(str(short)) - 1))
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))

    async def scene(nursery: Nursery) -> tuple[str, object]:
        async with visit(nursery, tmp_path) as manager:
            return manager.transport, await values(manager, {"one": "1"})

    nursery = Nursery("unit square")
    try:
        assert asyncio.run(scene(nursery)) == (transport, {"one": 1})
    finally:
        nursery.close()
        shutil.rmtree(short)


def test_kernels_follow_a_nursery_that_is_gone_and_new_ones_start_by_themselves(tmp_path: Path) -> None:
    async def scene(nursery: Nursery) -> dict[str, Any]:
        async with visit(nursery, tmp_path) as manager:
            process = manager.provisioner.process
            await values(manager, {})  # It is up, and watches its parent.
            nursery._process.kill()
            assert await exit_code(nursery, process) == 1
        assert not nursery.is_open
        async with visit(nursery, tmp_path) as manager:
            return await values(manager, {"parent": SEEN["parent"]})

    nursery = Nursery("unit square")
    try:
        assert asyncio.run(scene(nursery)) == {"parent": os.getpid()}
    finally:
        nursery.close()


def test_what_goes_wrong_in_preparation_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    nursery = Nursery("iris")
    assert nursery.code == UNKNOWN_DATA
    assert "There is no data set 'iris'" in nursery.said
    assert not nursery.is_open
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert Nursery("unit square").code == 1
