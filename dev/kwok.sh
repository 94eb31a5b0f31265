#!/bin/bash
# Builds kwok (nodes and pods that only pretend) into .local/bin.
. "$(dirname "$0")/lib.sh"
"$DEV/deps.sh" cluster
exec "$DEV/build.sh" kwok
