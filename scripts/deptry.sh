#!/usr/bin/env bash
# Checks that each package declares what it imports and imports what it declares.
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"

MODULES=twinspark-protos=twinspark,twinspark-rpc=twinspark_rpc,twinspark-kernels=twinspark_kernels
MODULES+=,twinspark-engine=twinspark_engine,twinspark-gateway=twinspark_gateway,twinspark-grammar=twinspark_grammar,twinspark-tools=twinspark_tools,grpcio=grpc
MODULES+=,grpcio-health-checking=grpc_health,grpcio-reflection=grpc_reflection,grpcio-status=grpc_status
MODULES+=,googleapis-common-protos=google,protobuf=google
# Used without being imported: uvicorn picks up its loop and parser, transformers its template engine, the launcher
# starts supervisord and the engine as programs, and the stubs import what the generator wrote.
UNIMPORTED='uvloop|httptools|jinja2|supervisor'

status=0
for package in protos/rpc kernels services/engine services/gateway services/grammar tools deploy/demo; do
    printf '%s: ' "$package"
    (cd "$package" && deptry src --no-ansi --package-module-name-map "$MODULES" \
        --known-first-party "twinspark_$(basename "$package")" --per-rule-ignores "DEP002=$UNIMPORTED") 2>&1 || status=1
done
exit "$status"
