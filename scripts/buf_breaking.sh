#!/usr/bin/env bash
# Compares the protos with protos/released.binpb, or before the first release with those of the parent commit, and fails
# on a change that breaks callers. Works offline.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"

if [ -f protos/released.binpb ]; then
    printf 'comparing with protos/released.binpb\n'
    exec buf breaking --against protos/released.binpb
fi
if ! git rev-parse --is-inside-work-tree >/dev/null; then
    printf 'git cannot read this checkout, so there is nothing to compare with\n' >&2
    exit 1
fi
if ! parent="$(git rev-parse --verify --quiet 'HEAD~1^{commit}')"; then
    printf 'skipped: no release yet, and this clone holds no parent commit to compare with (a first commit or a shallow clone)\n'
    exit 0
fi
before="$(mktemp -d)"
trap 'rm -rf "$before"' EXIT
if ! git archive "$parent" buf.yaml protos 2>/dev/null | tar -x -C "$before" 2>/dev/null; then
    printf 'skipped: the parent commit has no protos\n'
    exit 0
fi
printf 'comparing with the parent commit %s\n' "${parent:0:12}"
buf breaking --against "$before"
