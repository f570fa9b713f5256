#!/usr/bin/env bash
# Runs every static check and names those that failed. `scripts/check.sh NAME...` runs only these.
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"

SOURCES=(protos/rpc/src kernels/src services/engine/src services/gateway/src services/grammar/src tools/src deploy/demo/src tests scripts)
CHECKS=(ruff format mypy imports buf_lint buf_breaking deptry)

ruff_() { ruff check . ; }
format_() { ruff format --check . ; }
mypy_() { mypy "${SOURCES[@]}" ; }
imports_() { PYTHONPATH=tests lint-imports ; }
buf_lint_() { buf lint ; }
buf_breaking_() { scripts/buf_breaking.sh ; }
deptry_() { scripts/deptry.sh ; }

failed=()
for check in "${@:-${CHECKS[@]}}"; do
    started=$SECONDS
    printf '[check] %s\n' "$check"
    "${check}_" || failed+=("$check")
    printf '[check] %s took %s s\n' "$check" "$((SECONDS - started))"
done
if [ "${#failed[@]}" -gt 0 ]; then
    printf '[check] failed: %s\n' "${failed[*]}" >&2
    exit 1
fi
printf '[check] all passed\n'
