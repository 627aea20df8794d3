#!/bin/sh
# Makes .venv and installs the package with everything its tests need; says plainly what is missing.
set -eu

fail() {
    echo "error: $1" >&2
    exit 1
}

# A name on PATH proves nothing: version managers put stubs there that only print an error.
usable() {
    "$1" -c 'import sys; raise SystemExit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

python=""
for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
    if usable "$candidate"; then
        python=$candidate
        break
    fi
done
found=$("${PYTHON:-python3}" --version 2>/dev/null || echo "missing")
[ -n "$python" ] || fail "Python 3.11 or newer is needed and ${PYTHON:-python3} is $found. Install one, or name it: make PYTHON=/path/to/python3.12 …"

if ! .venv/bin/python -c '' >/dev/null 2>&1; then
    rm -rf .venv
    "$python" -m venv .venv || fail "$python cannot make a virtual environment. On Debian and Ubuntu: apt-get install python3-venv"
fi

pip=".venv/bin/python -m pip --quiet --disable-pip-version-check"

# uv takes seconds where pip takes minutes. It does not read pip's configuration, so whoever has an index of their own,
# and whomever uv fails, has pip.
with_uv() {
    ! $pip config list | grep -q '[.]index' || return 1
    $pip install --constraint constraints.txt uv || return 1
    .venv/bin/uv pip install --quiet --python .venv/bin/python --compile-bytecode \
        --constraint constraints.txt --editable '.[dev]'
}

echo "Installing into .venv (a minute or two the first time) …" >&2
with_uv >/dev/null 2>&1 || $pip install --constraint constraints.txt --editable '.[dev]' \
    || fail "the installation failed; pip's words are above. It needs a package index: check the network or pip's configuration, then run make again"
touch .venv/installed
