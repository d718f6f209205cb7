#!/bin/sh
# The command as the package has it. What Node compiles is kept by the agent's unit alone: a user must not run what
# another one could have written.
if [ -z "${NODE_COMPILE_CACHE:-}" ]; then
  NODE_DISABLE_COMPILE_CACHE=1
  export NODE_DISABLE_COMPILE_CACHE
fi
exec /usr/lib/headgate/bin/headgate "$@"
