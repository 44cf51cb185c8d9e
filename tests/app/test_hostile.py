"""Visits to a running web page, and attacks on it: each ends at most its own visit and leaves nothing behind.

The server has a limit of address space, so that a fault of this kind ends the server, not the machine. All
requests go to the loopback interface, and their number and time are bounded.
"""

import asyncio
import contextlib
import gc
import json
import random
import re
import struct
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import psutil
import pytest
from app.far_visitor import PROTOCOL, FarVisitor, connect, cookies_of, end_visit, far_visit, open_page
from browser.servers import left_behind, running_app
from jupyter_server.services.kernels.connection.base import serialize_msg_to_ws_v1
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest, HTTPResponse
from tornado.websocket import WebSocketClientConnection, WebSocketClosedError

from ewens_widgets.app.guard import LARGEST_MESSAGE, Allowance, MessageError, check, unpack

# Tornado's client warns of connections that were refused, which is what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's")


@pytest.fixture(autouse=True)
def no_remains(request: pytest.FixtureRequest) -> Iterator[None]:
    """Have these warnings now, not in another test."""
    yield
    if "served" in request.fixturenames:
        gc.collect()


def packed(kind: str = "comm_msg", channel: str = "shell", **content: object) -> bytes:
    """A message as pages send them."""
    header = {"msg_id": uuid4().hex, "msg_type": kind, "session": "s", "username": "", "version": "5.3"}
    metadata = {"version": "1.0.0" if kind == "comm_open" else "2.1.0"}
    parts = [json.dumps(part).encode() for part in (header, {}, metadata, content)]
    return serialize_msg_to_ws_v1(parts, channel)


def framed(parts: list[bytes], channel: str = "shell") -> bytes:
    return serialize_msg_to_ws_v1(parts, channel)


WIDGET = {"comm_id": "widget", "data": {"method": "update", "state": {}}}


def test_messages_of_a_page_are_passed_on() -> None:
    assert check(packed(**WIDGET))
    assert check(packed("comm_open", comm_id="c", target_name="jupyter.widget.control", data={}))
    assert check(packed("kernel_info_request"))
    channel, parts = unpack(packed(**WIDGET))
    assert channel == "shell"
    assert json.loads(parts[3]) == WIDGET


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"1234567",
        "text",
        b"\xff" * 40,
        (30_000_000).to_bytes(8, "little") + b"\0" * 64,
        struct.pack("<8Q", 7, 64, 5, 69, 71, 73, 75, 77) + b"shell",  # parts that end before they begin
        struct.pack("<8Q", 7, 64, 69, 71, 73, 75, 77, 2**60) + b"shell{}{}{}{}",  # and beyond the message
        packed(**WIDGET)[:-1],
        packed(**WIDGET) + b"more",
        framed([b"{}"] * 3),
        framed([b"{}"] * 200),
        framed([b"[]", b"{}", b"{}", b"{}"]),
        framed([b"\xff", b"{}", b"{}", b"{}"]),
        framed([b"[" * 100_000, b"{}", b"{}", b"{}"]),
        packed(comm_id=["no", "name"], data={}),
        packed(comm_id="c", data=[1]),
    ],
)
def test_what_no_page_sends_is_refused(message: bytes | str) -> None:
    with pytest.raises(MessageError):
        check(message)


@pytest.mark.parametrize(
    "message",
    [
        packed("execute_request", code="1"),
        packed("shutdown_request", "control", restart=False),
        packed("kernel_info_request", "control"),
        packed("comm_open", comm_id="c", target_name="jupyter.widget", data={}),
        framed([b'{"msg_type": ["comm_msg"]}', b"{}", b"{}", b"{}"]),
        framed([b"{}", b"{}", b"{}", b"{}"]),
    ],
)
def test_kinds_that_no_page_needs_are_dropped(message: bytes) -> None:
    assert not check(message)


def test_an_allowance_fills_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("ewens_widgets.app.guard.time.monotonic", lambda: now[0])
    allowance = Allowance(rate=2.0, reserve=10.0)
    assert [allowance.take(4) for _ in range(3)] == [True, True, False]
    now[0] = 3.0
    assert allowance.take(4)
    assert not allowance.take(1)


class Served(NamedTuple):
    """A running web page."""

    address: str
    process: psutil.Process
    folder: Path


@contextmanager
def limited_app(folder: Path, *options: str) -> Iterator[Served]:
    """The web page, whose server may not have more than 3 GB of addresses."""
    import resource

    with running_app(folder, *options) as (address, server):
        resource.prlimit(server.pid, resource.RLIMIT_AS, (3 * 10**9, resource.RLIM_INFINITY))
        yield Served(address, psutil.Process(server.pid), folder)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server, which has to stand all attacks one after another."""
    with limited_app(tmp_path_factory.mktemp("app"), "--visitors=6") as one:
        yield one


async def fetched(address: str, **headers: str) -> HTTPResponse:
    request = HTTPRequest(address, headers=headers, connect_timeout=150, request_timeout=150)
    return await AsyncHTTPClient().fetch(request, raise_error=False)


async def told(address: str, kernel: str, cookies: str) -> bool | str:
    """What the server tells a page that asks whether its visit goes on."""
    return json.loads((await fetched(f"{address}visits/{kernel}", Cookie=cookies)).body)


async def goes_on(address: str, kernel: str, cookies: str) -> bool:
    return await told(address, kernel, cookies) is True


@asynccontextmanager
async def undisturbed(address: str) -> AsyncIterator[FarVisitor]:
    """A visitor who plays meanwhile, and gets frames before and after."""
    async with far_visit(address) as visitor:
        visitor.press("Play")
        await visitor.until(3)
        yield visitor
        before = len(visitor.frames)
        for button in ("Reset", "Play"):  # the chain may have come to its end meanwhile
            visitor.press(button)
        async with asyncio.timeout(60):
            await visitor.until(before + 3)


class Stranger(NamedTuple):
    """Somebody with a page, and with a script in place of its widgets."""

    address: str
    kernel: str
    cookies: str

    async def connected(self) -> WebSocketClientConnection:
        return await connect(self.address, self.kernel, self.cookies)


@asynccontextmanager
async def stranger(address: str) -> AsyncIterator[Stranger]:
    kernel, cookies = await open_page(address)
    yield Stranger(address, kernel, cookies)
    with contextlib.suppress(HTTPClientError):  # ended already
        await end_visit(address, kernel, cookies)


async def closed(link: WebSocketClientConnection) -> str | None:
    """Read until the server closes the connection; its reason."""
    async with asyncio.timeout(30):
        while await link.read_message() is not None:
            pass
    reason = link.close_reason
    link.close()
    return reason


def widgets_wanted() -> Iterator[bytes]:
    """Opens the list of all widgets, and asks for it again and again: small questions, large answers."""
    comm = uuid4().hex
    yield packed("comm_open", comm_id=comm, target_name="jupyter.widget.control", data={})
    while True:
        yield packed(comm_id=comm, data={"method": "request_states"})


async def lies_about_sizes(visit: Stranger, _: psutil.Process) -> None:
    """Counts and sizes for which a parser that trusts them takes all memory, or many seconds."""
    for message in (b"\xff" * 40, (30_000_000).to_bytes(8, "little") + b"\0" * 64, b"x" * 17 * 2**20):
        link = await visit.connected()
        with contextlib.suppress(WebSocketClosedError):  # closed while it is being sent
            await link.write_message(message, binary=True)
        await closed(link)
    with pytest.raises(HTTPClientError, match="400"):
        await connect(visit.address, visit.kernel, visit.cookies, protocols=())


async def sends_much_json(visit: Stranger, _: psutil.Process) -> None:
    """15 MB that would take 500 MB once they are read."""
    link = await visit.connected()
    await link.write_message(packed(comm_id="c", data={"a": [{}] * 3_900_000}), binary=True)
    assert await closed(link) == "more JSON than a page sends"


async def reads_nothing(visit: Stranger, _: psutil.Process) -> None:
    """A client that is not asked for messages stops reading; answers wait in the server."""
    link = await visit.connected()
    with contextlib.suppress(WebSocketClosedError):  # or the attack lasts too long
        for message in widgets_wanted():
            await link.write_message(message, binary=True)
            await asyncio.sleep(0.05)
    link.close()


async def leaves_what_it_asked_for(visit: Stranger, _: psutil.Process) -> None:
    """Answers that come when the connection is gone are kept for a while; with too many the visit ends."""
    link = await visit.connected()
    for message in islice(widgets_wanted(), 400):
        await link.write_message(message, binary=True)
    link.close()
    while await goes_on(*visit):
        pass


async def sends_to_a_busy_process(visit: Stranger, server: psutil.Process) -> None:
    """Messages that are not answered wait in the server."""
    link = await visit.connected()
    await link.write_message(packed("kernel_info_request"), binary=True)
    await link.read_message()  # the process is connected
    process = max(server.children(), key=psutil.Process.create_time)
    process.suspend()
    reason = asyncio.create_task(closed(link))
    with contextlib.suppress(WebSocketClosedError):
        for _ in range(20):  # 80 MB, sooner than the rate allows: the reserve holds 64 MB
            parts = unpack(packed(**WIDGET))[1]
            await link.write_message(framed([*parts, bytes(4 * 2**20)]), binary=True)
            await asyncio.sleep(0.1)
    assert await reason == "more messages than the process answers"
    process.resume()


ATTACKS: list[Callable[[Stranger, psutil.Process], Awaitable[None]]] = [
    lies_about_sizes,
    sends_much_json,
    reads_nothing,
    leaves_what_it_asked_for,
    sends_to_a_busy_process,
]


@on_linux
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_messages_cost_the_server_little_memory_and_others_nothing(served: Served) -> None:
    async def carry_out(attack: Callable[[Stranger, psutil.Process], Awaitable[None]]) -> None:
        async with stranger(served.address) as visit:
            sizes = [served.process.memory_info().rss]

            async def measure() -> None:
                while True:
                    sizes.append(served.process.memory_info().rss)
                    await asyncio.sleep(0.02)

            measuring = asyncio.create_task(measure())
            async with asyncio.timeout(200):
                await attack(visit, served.process)
            measuring.cancel()
            assert max(sizes) - sizes[0] < 120e6, attack.__name__

    async def carry_out_all() -> None:
        async with undisturbed(served.address):
            for attack in ATTACKS:
                await carry_out(attack)

    asyncio.run(carry_out_all())


@on_linux
@pytest.mark.slow
def test_requests_are_answered_for_this_host_and_this_browser_only(served: Served) -> None:
    async def attack(address: str) -> None:
        port = address.rstrip("/").rpartition(":")[2]
        assert (await fetched(address, Host=f"evil.example:{port}")).code == 403
        reflected = await fetched(f"{address}?theme=%22%3E%3Cscript%3Ealert(1)%3C/script%3E")
        assert reflected.code == 400
        assert b"<script>" not in reflected.body
        assert (await fetched(f"{address}?data={'a' * 3000}")).code == 414
        for path in (
            "logout",
            "login",
            "voila/templates/lab/static/x.js",
            "api/kernels",
            "api/contents",
            "x",
        ):
            answer = await fetched(address + path)
            assert answer.code in {403, 404}, path
            assert len(answer.body) < 100, path
        page, script = (
            await fetched(f"{address}?theme=dark"),
            await fetched(f"{address}voila/static/voila.js"),
        )
        for answer in (page, script):
            assert answer.code == 200
            for name, value in {
                "X-Content-Type-Options": "nosniff",
                "Referrer-Policy": "same-origin",
            }.items():
                assert answer.headers[name] == value
            assert "frame-ancestors 'self'" in answer.headers["Content-Security-Policy"]
        assert b"cdn.jsdelivr" not in page.body
        kernel = re.search(r'"kernelId": *"([\w-]+)"', page.body.decode())[1]
        async with stranger(address) as visit:
            own, other = cookies_of(page), visit.cookies
            assert (await fetched(f"{address}api/kernels/{kernel}", Cookie=own)).code == 200
            for cookies in ("", other):
                for path in (f"api/kernels/{kernel}", f"visits/{kernel}"):
                    assert (await fetched(address + path, Cookie=cookies)).code == 403
                with pytest.raises(HTTPClientError, match="403"):
                    await connect(address, kernel, cookies)
            for foreign in ({"Origin": "http://evil.example"}, {"Host": f"evil.example:{port}"}):
                with pytest.raises(HTTPClientError, match="403"):
                    await connect(address, kernel, own, **foreign)
            links = [await connect(address, kernel, own) for _ in range(4)]
            with pytest.raises(HTTPClientError, match="429"):
                await connect(address, kernel, own)
            for link in links:
                link.close()
            await end_visit(address, kernel, own)

    asyncio.run(attack(served.address))


@on_linux
@pytest.mark.slow
def test_a_visit_whose_process_ends_says_so_and_leaves_nothing(served: Served) -> None:
    """It is not started again under the same name."""
    import resource

    def want_memory(process: psutil.Process) -> None:
        assert resource.prlimit(process.pid, resource.RLIMIT_AS) == (4 * 10**9,) * 2
        most = process.memory_info().vms + 50 * 10**6
        resource.prlimit(process.pid, resource.RLIMIT_AS, (most, most))

    async def end(
        address: str, how: Callable[[psutil.Process], object], most_handles: float = float("inf")
    ) -> tuple[bool | str, dict[str, Any]]:
        before = set(served.process.children())
        kernel, cookies = await open_page(address)
        link = await connect(address, kernel, cookies)
        (process,) = set(served.process.children()) - before
        asked = asyncio.create_task(told(address, kernel, cookies))
        await asyncio.sleep(0.5)
        assert not asked.done()  # the question is held while the visit goes on
        how(process)
        async with asyncio.timeout(60):  # a second or two; a busy machine is no fault
            reason = await asked
            link.close()
            left = left_behind(served.process, served.folder)
            while left["processes"] != [c.pid for c in before] or left["handles"] > most_handles:
                await asyncio.sleep(0.1)
                left = left_behind(served.process, served.folder)
        return reason, left

    reason, first = asyncio.run(end(served.address, psutil.Process.kill))
    assert "has stopped" in str(reason)
    # A few may be of what was closed last; the others are closed in time, or the wait ends with an error.
    reason, left = asyncio.run(end(served.address, want_memory, first["handles"] + 4))
    assert "more memory than a visitor" in str(reason)
    assert left["files"] == first["files"]


@on_linux
@pytest.mark.slow
def test_thirty_openings_that_are_gone_at_once_leave_nothing(served: Served) -> None:
    """Some of them when their process has started, and a part of the page has come."""

    async def give_up(host: str, port: str, *, is_late: bool) -> None:
        answer, request = await asyncio.open_connection(host, int(port))
        request.write(f"GET / HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        await request.drain()
        if is_late:
            await answer.readuntil(b"<head>")
        request.close()

    async def crowd(address: str) -> None:
        _, host, port = address.rstrip("/").replace("//", "").split(":")
        for number in range(30):
            await give_up(host, port, is_late=number % 15 == 0)
        async with asyncio.timeout(90):
            async with far_visit(address) as visitor:  # who comes meanwhile gets a place
                assert visitor.models
            left = left_behind(served.process, served.folder)
            while left["processes"] or left["handles"] > before["handles"] + 4:
                await asyncio.sleep(0.1)
                left = left_behind(served.process, served.folder)
            assert left["files"] == before["files"]

    before = left_behind(served.process, served.folder)
    assert before["processes"] == []
    asyncio.run(crowd(served.address))


@on_linux
@pytest.mark.slow
def test_visits_leave_nothing_behind_and_give_way_to_the_server(served: Served) -> None:
    """Visitors' processes are sessions of their own to the scheduler, and no thread takes back priority."""
    server = served.process

    async def visit(address: str, *, is_alone: bool) -> int:
        async with far_visit(address) as visitor:
            visitor.choose("as fast as possible")
            visitor.press("Play")
            await visitor.until(5)
            if is_alone:
                (kernel,) = server.children()
                assert kernel.nice() == server.nice() + 5
                assert fields(kernel.pid, "stat")[3] == str(kernel.pid)
                niceness = {fields(kernel.pid, f"task/{thread.id}/stat")[16] for thread in kernel.threads()}
                assert niceness == {str(kernel.nice())}
            return len(visitor.models)

    async def visits(address: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for together in (1, 1, 1, 3):
            shown = await asyncio.gather(*(visit(address, is_alone=together == 1) for _ in range(together)))
            assert set(shown) == {shown[0]}, "each has an Explorer of its own, and all of it"
            found.append(await settled(found))
        return found

    async def settled(before: list[dict[str, Any]]) -> dict[str, Any]:
        """What is left once the server has closed its end of a visit, which it does in its own time.

        Visits one after another need no more handles than the ones before; a leak is waited for in vain.
        """
        async with asyncio.timeout(60):
            while True:
                left = left_behind(server, served.folder)
                if len(before) in (0, 3) or left["handles"] <= min(one["handles"] for one in before):
                    return left
                await asyncio.sleep(0.05)

    found = asyncio.run(visits(served.address))
    # The first opens what is used again by those who follow; how much that is depends on how many they are.
    for kind in ("processes", "files"):
        assert found[0][kind] == found[1][kind] == found[2][kind] == found[3][kind]
    assert found[0]["threads"] == found[1]["threads"] == found[2]["threads"]


def fields(process: int, path: str) -> list[str]:
    """What Linux tells of a process, from the third field on."""
    return Path(f"/proc/{process}/{path}").read_text().rpartition(")")[2].split()


VALUES: list[Any] = [
    *(
        None,
        True,
        -1,
        10**400,
        1e308,
        float("nan"),
        "",
        "x" * 100_000,
        "\0",
        "NaN",
        "__import__('os').abort()",
    ),
    *([], {}, {"a": {"b": [1]}}, ["x"] * 5000, json.loads("[" * 400 + "]" * 400)),
]


def nonsense(rng: random.Random) -> bytes:
    """What is no message: bytes, or a message with some bytes changed or cut off."""
    if rng.random() < 0.3:
        return rng.randbytes(rng.randrange(200))
    message = bytearray(packed(**WIDGET))
    if rng.random() < 0.5:
        return bytes(message[: rng.randrange(len(message))])
    for _ in range(rng.randrange(1, 6)):
        message[rng.randrange(len(message))] = rng.randrange(256)
    return bytes(message)


def untrue(rng: random.Random, models: dict[str, dict[str, Any]]) -> bytes:
    """What a widget is told: values of its own state and others, of wrong types, or missing."""
    name = rng.choice(list(models))
    keys = [*models[name]["state"], "kind", "name", "viewer", "number", "event", "no trait"]
    data: dict[str, Any] = {
        "method": rng.choice(["update", "update", "custom", "request_state", "request_states", "", None, 3]),
        "state": {rng.choice(keys): rng.choice(VALUES) for _ in range(3)},
        "content": {rng.choice(keys): rng.choice(VALUES) for _ in range(3)},
        "buffer_paths": rng.choice([[], [], [["value"]], [[1]], None, "x"]),
    }
    for key in rng.sample(list(data), rng.randrange(3)):
        del data[key]
    return packed(comm_id=rng.choice([name, name, name, "no widget"]), data=data)


def test_nonsense_is_refused_or_harmless() -> None:
    rng = random.Random(37)  # noqa: S311 - a test
    outcomes = set()
    for _ in range(10_000):
        try:
            outcomes.add(check(nonsense(rng)) is not None)
        except MessageError:
            outcomes.add(None)
    assert outcomes == {True, False, None}  # a changed byte of a text is a text


@on_linux
@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_ten_thousand_messages_end_no_server_and_no_other_visit(served: Served) -> None:
    """Most of them reach widgets of ours, in all sections; some are nonsense, and end their connection."""
    rng = random.Random(37)  # noqa: S311 - a test
    address, server, _ = served
    ended = []

    async def attack_one(others: set[psutil.Process]) -> int:
        sent = 0
        async with far_visit(address) as visitor:
            (process,) = set(server.children()) - others
            await visitor.open_sections()
            visit = address, visitor.kernel, visitor.cookies
            while sent < 1000 and process.is_running():
                link = await connect(*visit)
                reading = asyncio.create_task(closed(link))
                with contextlib.suppress(WebSocketClosedError):
                    for _ in range(rng.randrange(100)):
                        await link.write_message(untrue(rng, visitor.models), binary=True)
                        sent += 1
                        await asyncio.sleep(0.005)
                    await link.write_message(nonsense(rng), binary=True)
                    sent += 1
                link.close()
                with contextlib.suppress(TimeoutError):
                    await reading
            if is_killed := len(ended) == 1:
                process.kill()
            gone = is_killed or not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
            ended.append(gone)
            async with asyncio.timeout(60):
                while gone and await goes_on(*visit):
                    pass
        return sent

    async def attack() -> None:
        async with undisturbed(address):
            others, sent = set(server.children()), await attack_one(set(server.children()))
            before = server.memory_info().rss
            while sent < 10_000:
                sent += await attack_one(others)
            assert server.memory_info().rss - before < 50e6
        assert any(ended)

    asyncio.run(attack())


def test_the_largest_message_holds_an_upload() -> None:
    assert LARGEST_MESSAGE > 3 * 5_000_000
    assert PROTOCOL.startswith("v1.")
