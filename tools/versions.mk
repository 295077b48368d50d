# Tools that are neither Go modules (tools/go/*/go.mod) nor Python packages
# (tools/requirements.txt).
CARGO_DENY_VERSION := 0.20.2
