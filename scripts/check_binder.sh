#!/usr/bin/env bash
# Make an environment from binder/ alone, as Binder does, and compare notebooks' outputs in it.
#   scripts/check_binder.sh VENV [NOTEBOOK…]      (default: the quickstart)
# VENV is where nbval is installed; the notebooks run in the new environment, which is deleted in the end.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tests=$(realpath "${1:?"usage: $0 VENV [NOTEBOOK…]"}")
shift
[ $# -gt 0 ] || set -- notebooks/01_quickstart.ipynb

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
environment=$folder/environment

wanted=$(sed 's/^python-//' binder/runtime.txt)
python=$(command -v "python$wanted" || command -v python3)
found=$("$python" -c 'import sys; print(*sys.version_info[:2], sep=".")')
[ "$found" = "$wanted" ] || echo "Binder uses Python $wanted, this check $found: no other one was found"

# Binder installs what the repository has, not what lies in a working copy besides.
echo "Making an environment from binder/"
mkdir "$folder/repository"
git ls-files -z --cached --others --exclude-standard | xargs -0 tar -cf - | tar -xf - -C "$folder/repository"
"$python" -m venv "$environment"
cd "$folder/repository"
# The tests' own copy of the package must not be found first.
unset PYTHONPATH
export PATH=$environment/bin:$PATH
python -m pip install --quiet --disable-pip-version-check --requirement binder/requirements.txt
./binder/postBuild
python -m ipykernel install --prefix "$folder/kernel" --name binder >/dev/null

echo "Running $* in it"
JUPYTER_PATH=$folder/kernel/share/jupyter "$tests/bin/python" -m pytest -q -p no:cacheprovider \
    --nbval --nbval-kernel-name binder --nbval-sanitize-with tests/nbval_sanitize.cfg "$@"
