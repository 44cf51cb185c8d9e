"""The house rules of the layout, and the way of an iteration from Play to the messages that paint it.

`docs/architecture.md` tells the same to a reader; what it says about the way is compared with what is seen
here.
"""

import ast
import json
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

import ewens_widgets

PACKAGE = Path(ewens_widgets.__file__).parent
PAGE = PACKAGE.parent / "docs" / "architecture.md"
SOURCES = sorted(path for path in PACKAGE.rglob("*.py") if "notebooks" not in path.parts)
MOST_FILES, MOST_IN_A_FOLDER = 130, 15
MOST_LINES, MOST_TEST_LINES = 39_100, 32_550
# These bars follow the package down: whoever removes files or lines lowers them. Wanted are 34 000 lines, and
# 25 000 lines of tests.

# Besides the views of the Explorer, one file each. Two of them choose and do what a family of shapes does,
# two draw the ellipses.
LONGEST_WAY = 31

# Plays the Explorer on an event loop, at one iteration a frame and at full speed. Prints our files that
# were called between Play and the frame of iteration 30. There is a viewer, so frames are sent.
WALK = """
import asyncio, json, sys, threading, warnings
warnings.simplefilter("ignore")
import ewens_widgets as ew
root, seen = ew.__path__[0], set()

def look(frame, event, argument):
    name = frame.f_code.co_filename
    if event == "call" and name.startswith(root):
        seen.add(name[len(root) + 1:])

async def walk(speed):
    data = ew.datasets.unit_square(per_cluster=5, seed=0)
    ew.Sampler(data).sample(1, progress=False)  # compiles, which is not part of the way
    explorer = ew.Explorer(data)
    player = explorer.player
    player.speed = speed
    player.viewer_attached("somebody")
    shown = asyncio.Event()

    class Watcher:
        def show(self, frame):
            player.acknowledge(frame.number, "somebody")
            if frame.status.iteration >= 30:
                shown.set()

    player.attach(Watcher())
    threading.setprofile(look)
    sys.setprofile(look)
    player.play()
    await shown.wait()
    sys.setprofile(None)
    threading.setprofile(None)
    player.pause()
    await player.wait()
    explorer.close()

for speed in (1, None):
    asyncio.run(walk(speed))
print(json.dumps(sorted(seen)))
"""


def walk(interpreted: bool) -> set[str]:
    """Files on the way of an iteration; interpreted, those of the kernels are seen too."""
    environment = {**os.environ, "EWENS_WIDGETS_INTERPRETED": "1" if interpreted else ""}
    result = subprocess.run(
        [sys.executable, "-c", WALK], capture_output=True, text=True, check=False, env=environment
    )
    assert result.returncode == 0, result.stderr
    return {Path(name).as_posix() for name in json.loads(result.stdout)}


def classes_of(path: Path) -> list[str]:
    return [node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)]


def lines_of(paths: Iterable[Path]) -> int:
    return sum(path.read_text().count("\n") for path in paths)


def repeated(names: list[str]) -> list[str]:
    return sorted(name for name, count in Counter(names).items() if count > 1)


def test_files_are_chapters_and_folders_have_a_dozen_or_so() -> None:
    folders = Counter(path.parent.relative_to(PACKAGE).as_posix() for path in SOURCES)
    assert len(SOURCES) <= MOST_FILES
    assert lines_of(SOURCES) <= MOST_LINES
    assert lines_of((PACKAGE.parent / "tests").rglob("*.py")) <= MOST_TEST_LINES
    assert {name: count for name, count in folders.items() if count > MOST_IN_A_FOLDER} == {}


def test_a_module_name_occurs_once() -> None:
    names = [path.stem.lstrip("_") for path in SOURCES if path.stem not in ("__init__", "__main__")]
    assert repeated(names) == []


def test_a_class_name_occurs_once() -> None:
    where = defaultdict(list)
    for path in SOURCES:
        for name in classes_of(path):
            where[name.lstrip("_")].append(path.relative_to(PACKAGE).as_posix())
    assert {name: places for name, places in where.items() if len(places) > 1} == {}


@pytest.mark.slow
def test_the_way_of_an_iteration_is_short_and_the_page_tells_it() -> None:
    way = walk(interpreted=True) | walk(interpreted=False)
    walked = {"playback/player.py", "sampling/sampler.py", "views/partition_view.py"}
    assert walked <= way, "nothing was walked"
    views = {name for name in way if re.fullmatch(r"views/\w+_views?\.py", name)}
    assert len(views) >= 4  # those that are shown first
    assert len(way - views) <= LONGEST_WAY, "\n".join(sorted(way))
    told = set(re.findall(r"`([\w/]+\.py)`", PAGE.read_text()))
    assert way <= told, "docs/architecture.md leaves out files on the way of an iteration"
