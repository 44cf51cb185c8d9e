"""Chains on the site without a server run compiled, and are those of interpreted code to the last bit.

Most of it needs Pyodide only, which runs in the Node that Playwright brings along, and that is quicker than a
page. Like the other tests of the site they take long, and are run by `make lite-test`.
"""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import pytest
from browser.lite_site import CUT_OFF, START, cut_off_page, served
from browser.opened import OUTPUT
from playwright._impl._driver import compute_driver_executable
from playwright.sync_api import Browser, expect

from browser_site.build import build_site

pytestmark = [pytest.mark.timeout(1200), pytest.mark.lite]

# Loads the package as a page of the site does, and runs code that finds the tests.
SCRIPT = """
const [runtime, tests, interpreted, code] = process.argv.slice(2);
const { loadPyodide } = await import(`${runtime}/pyodide.mjs`);
const env = { HOME: "/home/pyodide", EWENS_WIDGETS_INTERPRETED: interpreted };
const pyodide = await loadPyodide({ indexURL: `${runtime}/`, env });
await pyodide.loadPackage("ewens-widgets", { messageCallback: () => {} });
pyodide.FS.mkdir("/tests");
pyodide.FS.mount(pyodide.FS.filesystems.NODEFS, { root: tests }, "/tests");
await pyodide.runPythonAsync(`import sys; sys.path.append("/tests")\\n${code}`);
process.exit(0);
"""
CHAINS = """
import json
import ewens_widgets as ew
from ewens_widgets.analysis.similarity import RunningSimilarity
from sampling.short_chains import all_chains
trace = ew.Sampler(ew.datasets.unit_square(per_cluster=5, seed=0), seed=1).sample(30, progress=False)
running = RunningSimilarity(20)
running.add_block(trace.labels)
assert (abs(running.similarity() - trace.similarity()) < 1e-12).all()
print(json.dumps({**all_chains(), "counted": running.similarity().tolist()}))
"""
# How a chain runs with a module that is damaged, without one, and with the one that came with the package.
TOLD = """
import importlib.util, json, sys
from pathlib import Path
module = Path(importlib.util.find_spec("ewens_widgets").origin).parent / "sampling" / "kernels.wasm"
whole = module.read_bytes()
def run(content):
    module.unlink()
    if content:
        module.write_bytes(content)
    for name in [name for name in sys.modules if name.startswith("ewens_widgets")]:
        del sys.modules[name]
    import ewens_widgets as ew
    from ewens_widgets.sampling import driver
    trace = ew.Sampler(ew.datasets.unit_square(per_cluster=3, seed=0), seed=1).sample(5, progress=False)
    module.touch()
    return type(driver.advance_by_likelihood).__name__, trace.labels.tolist()
print(json.dumps([run(whole[:1000]), run(b""), run(whole)]))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_site(tmp_path_factory.mktemp("lite") / "site", offline=True)


def in_pyodide(folder: Path, code: str, interpreted: str = "") -> object:
    """Run code in Pyodide and return what it prints as JSON."""
    node, _ = compute_driver_executable()
    tests = Path(__file__).resolve().parent.parent
    runtime = folder / "static" / "pyodide"
    command = [str(node), "--input-type=module", "-", str(runtime), str(tests), interpreted, code]
    done = subprocess.run(command, input=SCRIPT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-1000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_every_chain_is_that_of_interpreted_code_to_the_last_bit(folder: Path) -> None:
    chains, interpreted = in_pyodide(folder, CHAINS), in_pyodide(folder, CHAINS, interpreted="1")
    assert isinstance(chains, dict)
    assert isinstance(interpreted, dict)
    assert chains.keys() == interpreted.keys()
    assert len(chains) > 60
    for name, chain in chains.items():
        assert chain == interpreted[name], name


def test_without_a_module_that_can_be_loaded_chains_are_interpreted(folder: Path) -> None:
    told = in_pyodide(folder, TOLD)
    assert isinstance(told, list)
    ways, labels = zip(*told, strict=True)
    assert ways == ("function", "function", "Loaded")
    assert labels[0] == labels[1] == labels[2]


# The same chain both ways. A call that the module does not have would run interpreted: here it fails.
BOTH = """
import ewens_widgets as ew
from ewens_widgets.sampling import driver
def draws():
    return ew.Sampler(ew.datasets.wine(), seed=1).sample(3, progress=False).log_posterior.tolist()
def advance_by_likelihood(*_):
    raise AssertionError
loop = driver.advance_by_likelihood
plain, loop.py_func = loop.py_func, advance_by_likelihood
way, found = type(loop).__name__, draws()
driver.advance_by_likelihood = plain
print(way, found == draws(), len(set(found)))
"""


def test_a_page_runs_it(folder: Path, launch: Callable[..., Browser]) -> None:
    with served(folder) as site:
        page = cut_off_page(launch(CUT_OFF), site)
        page.goto(f"{site.address}repl/index.html?{urlencode({'kernel': 'python', 'code': BOTH})}")
        expect(page.locator(OUTPUT).last).to_have_text("Loaded True 3", timeout=START)
        page.context.browser.close()  # type: ignore[union-attr]
        assert site.asked == []
