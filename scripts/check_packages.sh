#!/usr/bin/env bash
# Build wheel and source archive into dist/, check them, and try each in an environment of its own, without extras.
#   scripts/check_packages.sh VENV        VENV has hatchling, twine and check-wheel-contents; PYTHON=… tries another one
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tools=$(realpath "${1:?"usage: $0 VENV"}")

rm -rf dist
"$tools/bin/python" -m hatchling build
"$tools/bin/python" -m twine check --strict dist/*
"$tools/bin/check-wheel-contents" dist/*.whl

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Whatever else Python would find must not stand in for the package.
unset PYTHONPATH
for package in dist/*.whl dist/*.tar.gz; do
    echo "Trying $package"
    "${PYTHON:-$tools/bin/python}" -m venv --clear "$folder/environment"
    "$folder/environment/bin/python" -m pip install --quiet --disable-pip-version-check "$package"
    # So few draws cannot converge; any other warning is a fault.
    (cd "$folder" && EWENS_WIDGETS_INTERPRETED=1 environment/bin/python -W error \
        -W "ignore:the chains have not converged" -c "
from pathlib import Path
import ewens_widgets as ew
from ewens_widgets import app
found = ew.AffineClustering(n_chains=2, draws=40, burn_in=20, random_state=0).fit(ew.datasets.half_moons().X[::6])
assert ew.datasets.leukemia(n_components=20).X.shape == (38, 20)
assert app.copy_tutorials(app.shipped_tutorials(), Path('environment/course')) >= 1
print(ew.__version__, found.labels_.size, 'points clustered without extras, data and tutorials found')
")
    "$folder/environment/bin/ewens-widgets" --version
done
