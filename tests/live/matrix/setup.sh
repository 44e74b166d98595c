#!/usr/bin/env bash
# Gets Synapse, the reference homeserver of Matrix, from PyPI, by name, into an
# environment of its own in the ignored folder .live/synapse/. Called by setup.sh.
set -euo pipefail
cd "$(dirname "$0")/../../.."

# Pinned: the tests say which version they were written against.
version='1.163.2'
if compgen -G ".live/synapse/lib/python*/site-packages/matrix_synapse-$version.dist-info" > /dev/null; then
  exit 0
fi
python3 -m venv .live/synapse
.live/synapse/bin/pip install -q "matrix-synapse==$version"
