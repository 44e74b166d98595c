#!/usr/bin/env bash
# Gets pywa from PyPI, by name, into an environment of its own in the ignored folder
# .live/whatsapp/. Called by setup.sh.
set -euo pipefail
cd "$(dirname "$0")/../.."

# Pinned: the tests say which version they were written against.
version='4.5.0'
if compgen -G ".live/whatsapp/lib/python*/site-packages/pywa-$version.dist-info" > /dev/null; then
  exit 0
fi
python3 -m venv .live/whatsapp
.live/whatsapp/bin/pip install -q "pywa==$version"
