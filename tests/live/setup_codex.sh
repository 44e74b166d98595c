#!/usr/bin/env bash
# Gets Codex from npm, by name, into the ignored folder .live/codex/. Called by setup.sh.
# The program itself comes as a package for this system; npm runs none of its scripts.
set -euo pipefail
cd "$(dirname "$0")/../.."

version=0.171.0 # the tests say which version they were written against
package=@openai/codex
there=.live/codex/node_modules/$package/package.json
if [[ -f $there ]] && grep -q "\"version\": \"$version\"" "$there"; then
  exit 0
fi
if ! command -v npm > /dev/null; then
  echo 'tests/live/setup_codex.sh: npm is missing; install Node.js 20 or later.' >&2
  exit 1
fi
mkdir -p .live/codex
npm install --prefix .live/codex --no-audit --no-fund --silent --ignore-scripts \
  "$package@$version"
