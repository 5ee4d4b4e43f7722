#!/usr/bin/env bash
# Gradescope runs this as root, once, when the container's image is built: it installs the grader.
# The users that run students' code must not be able to read any of it.
set -euo pipefail
cd /autograder/source
umask 022

suits() { "$1" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; }

find_python() {
    local name
    for name in python3 python3.13 python3.12 python3.11; do
        if command -v "$name" >/dev/null && suits "$name"; then
            command -v "$name"
            return
        fi
    done
    return 1
}

install_python() {
    export DEBIAN_FRONTEND=noninteractive
    apt-get update
    if ! apt-get install -y --no-install-recommends python3.12 python3.12-venv; then
        echo "This image has no Python 3.11 to 3.13. Choose the image with Ubuntu 24.04." >&2
        exit 1
    fi
}

if [ ! -x /autograder/venv/bin/python ]; then
    find_python >/dev/null || install_python
    "$(find_python)" -m venv /autograder/venv
fi
python=/autograder/venv/bin/python

# Gradescope has no GPU, but pip's torch for Linux includes gigabytes of CUDA libraries. To leave them
# out, enter the package index of PyTorch's CPU builds here:
# export PIP_EXTRA_INDEX_URL=
# Every user may read the grader's dependencies; only root may read the grader.
"$python" -m pip install --no-cache-dir -c constraints.txt -r requirements.txt
"$python" -m pip install --no-cache-dir --no-deps --no-index --upgrade --target /autograder/grader \
    wheels/*.whl
chmod -R go-rwx /autograder/source
chmod 0700 /autograder/grader # not its contents: the sandbox shows the library to students
