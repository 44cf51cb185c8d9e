#!/usr/bin/env python3
"""Print the exact versions of everything that `ewens-widgets[bench]` needs in an environment.

    scripts/freeze.py .venv/bin/python > binder/constraints.txt

Only the closure of the dependencies is listed: what else lies in the environment is not ours to pin.
"""

import json
import subprocess
import sys

# Run in the environment asked about, which must have `packaging` (pytest brings it).
_CLOSURE = """
import json, re
from importlib.metadata import PackageNotFoundError, distribution
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

def wanted(requirement, extras):
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras))

found, seen, waiting = {}, set(), [("ewens-widgets", ("bench",))]
while waiting:
    name, extras = waiting.pop()
    if (name, extras) in seen:
        continue
    seen.add((name, extras))
    try:
        package = distribution(name)
    except PackageNotFoundError:
        continue
    found[canonicalize_name(name)] = package.version
    for text in package.requires or ():
        requirement = Requirement(text)
        if wanted(requirement, extras):
            waiting.append((requirement.name, tuple(sorted(requirement.extras))))
found.pop("ewens-widgets")
print(json.dumps(found))
"""


def main() -> None:
    """Print the constraints file of the environment named on the command line."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    result = subprocess.run([sys.argv[1], "-c", _CLOSURE], stdout=subprocess.PIPE, check=True)
    versions = json.loads(result.stdout)
    versions.pop("setuptools", None)  # each Python needs its own, and brings it
    print("# Exact versions that the tests are run with; made by scripts/freeze.py, see CONTRIBUTING.md.")
    for name, version in sorted(versions.items()):
        print(f"{name}=={version}")


if __name__ == "__main__":
    main()
