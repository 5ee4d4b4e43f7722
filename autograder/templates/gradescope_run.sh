#!/usr/bin/env bash
# Gradescope runs this as root for each submission, in a fresh container. Only instructors see its output;
# students see results/results.json.
set -u
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/autograder LANG=C.UTF-8 \
    PYTHONPATH=/autograder/grader PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 \
    /autograder/venv/bin/python -s -P -m autograder.platforms.gradescope_container /autograder
