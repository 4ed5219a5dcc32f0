#!/usr/bin/env bash
# Install what the tests in tests/browser need: Chromium, from the system's packages, and axe-core, from npm.
# axe-core checks accessibility. It goes into .browser/, which git ignores: it is a test tool and is not shipped.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v chromium > /dev/null; then
  if [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
    echo "Browser tests need Chromium. Install it with your system's packages, for example: apt-get install chromium" >&2
    exit 1
  fi
  echo "Installing Chromium for the browser tests (once) ..."
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium > /dev/null
fi

if [ ! -f .browser/node_modules/axe-core/axe.min.js ]; then
  echo "Installing axe-core into .browser (once) ..."
  mkdir -p .browser
  npm install --silent --prefix .browser --no-save --no-package-lock axe-core@4
fi
