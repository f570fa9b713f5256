#!/usr/bin/env bash
# Generates protos/gen from the .proto files when one of them, or the pinned generator, is newer than the last run.
set -euo pipefail
cd "$(dirname "$0")/.."

STAMP=protos/gen/stamp
if [ -f "$STAMP" ] && [ -z "$(find protos/twinspark constraints.txt scripts/protos.sh -newer "$STAMP" -print -quit)" ]; then
    exit 0
fi
bin="$PWD/.venv/bin"
new="$(mktemp -d protos/gen.XXXXXX)"
trap 'rm -rf "$new"' EXIT
mapfile -t files < <(find protos/twinspark -name '*.proto' | sort)
"$bin/python" -m grpc_tools.protoc -Iprotos --python_out="$new" --grpc_python_out="$new" \
    --plugin=protoc-gen-mypy="$bin/protoc-gen-mypy" --plugin=protoc-gen-mypy_grpc="$bin/protoc-gen-mypy_grpc" \
    --mypy_out=quiet:"$new" --mypy_grpc_out=quiet:"$new" "${files[@]}"
# Swapped as a whole: stubs of removed protos go, and a reader meets either the old set or the new one.
mkdir -p protos/gen
rm -rf protos/gen/twinspark
mv "$new/twinspark" protos/gen/twinspark
touch "$STAMP"
printf '[protos] generated %s files from %s protos\n' "$(find protos/gen -name '*.py*' | wc -l)" "${#files[@]}"
