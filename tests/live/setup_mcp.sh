#!/usr/bin/env bash
# Gets the reference servers of the Model Context Protocol from npm, by name, into the
# ignored folder .live/mcp/. Called by setup.sh.
set -euo pipefail
cd "$(dirname "$0")/../.."

servers=(
  @modelcontextprotocol/server-everything
  @modelcontextprotocol/server-filesystem
)
if [[ -d .live/mcp/node_modules/${servers[0]} && -d .live/mcp/node_modules/${servers[1]} ]]; then
  exit 0
fi
if ! command -v npm > /dev/null; then
  echo 'tests/live/setup_mcp.sh: npm is missing; install Node.js 20 or later.' >&2
  exit 1
fi
mkdir -p .live/mcp
npm install --prefix .live/mcp --no-audit --no-fund --silent "${servers[@]}"
