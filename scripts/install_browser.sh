#!/usr/bin/env bash
# Find or install Chromium and Firefox for the browser tests. Succeeds in either case: the tests themselves fail
# without a browser where CI=true, and are skipped elsewhere, saying so.
#   scripts/install_browser.sh VENV STAMP     (the stamp is touched once there is a browser)
set -euo pipefail

environment=${1:?"usage: $0 VENV STAMP"}
stamp=${2:?"usage: $0 VENV STAMP"}

have_browser() {
    command -v chromium >/dev/null
}

have_firefox() {
    command -v firefox-esr >/dev/null || command -v firefox >/dev/null
}

install_with_apt() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    echo "Installing $1 for the browser tests (apt-get)"
    apt-get -o DPkg::Lock::Timeout=300 update -qq \
        && DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq \
            --no-install-recommends "$1" fonts-dejavu-core >/dev/null
}

install_with_playwright() {
    echo "Installing Chromium for the browser tests (playwright)"
    "$environment/bin/playwright" install chromium
}

have_firefox || install_with_apt firefox-esr || echo "No Firefox could be installed: sudo apt-get install firefox-esr" >&2
if have_browser || { install_with_apt chromium && have_browser; } || install_with_playwright; then
    touch "$stamp"
else
    {
        echo "No browser could be installed, so the browser tests cannot run. Any of these gives one:"
        echo "  sudo apt-get install chromium"
        echo "  $environment/bin/playwright install --with-deps chromium"
    } >&2
fi
