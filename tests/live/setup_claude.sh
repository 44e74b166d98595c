#!/usr/bin/env bash
# Gets Claude Code from npm, by name, into the ignored folder .live/claude/. Called by
# setup.sh. The program itself comes as a package for this system; npm runs none of its
# scripts.
set -euo pipefail
cd "$(dirname "$0")/../.."

version=2.1.197 # the tests say which version they were written against
package=@anthropic-ai/claude-code
there=.live/claude/node_modules/$package/package.json
if [[ -f $there ]] && grep -q "\"version\": \"$version\"" "$there"; then
  exit 0
fi
if ! command -v npm > /dev/null; then
  echo 'tests/live/setup_claude.sh: npm is missing; install Node.js 20 or later.' >&2
  exit 1
fi
mkdir -p .live/claude
npm install --prefix .live/claude --no-audit --no-fund --silent --ignore-scripts \
  "$package@$version"
