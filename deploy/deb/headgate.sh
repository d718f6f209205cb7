#!/bin/sh
# The package's command. Only the agent's unit has a compile cache, because a user must not run code that another user
# could have written.
if [ -z "${NODE_COMPILE_CACHE:-}" ]; then
  NODE_DISABLE_COMPILE_CACHE=1
  export NODE_DISABLE_COMPILE_CACHE
fi

# check and render read settings. Without a named file they use those of headgate.service, including its variables. A user
# without write access to the agent's folder gets the defaults.
case ${1:-} in
  check | render)
    named=${HEADGATE_CONFIG:-}
    for word in "$@"; do
      case $word in
        --config | --config=*) named=$word ;;
      esac
    done
    if [ -z "$named" ] && [ -r /etc/headgate/headgate.yaml ] && [ -w /var/lib/headgate ]; then
      HEADGATE_CONFIG=/etc/headgate/headgate.yaml
      HEADGATE_STATE_DIR=${HEADGATE_STATE_DIR:-/var/lib/headgate}
      HEADGATE_RUNTIME_DIR=${HEADGATE_RUNTIME_DIR:-/run/headgate}
      HEADGATE_HAPROXY_SUPERVISOR=${HEADGATE_HAPROXY_SUPERVISOR:-external}
      HEADGATE_HAPROXY_ACCESS=${HEADGATE_HAPROXY_ACCESS:-group}
      HEADGATE_KEEPALIVED_SUPERVISOR=${HEADGATE_KEEPALIVED_SUPERVISOR:-external}
      export HEADGATE_CONFIG HEADGATE_STATE_DIR HEADGATE_RUNTIME_DIR
      export HEADGATE_HAPROXY_SUPERVISOR HEADGATE_HAPROXY_ACCESS HEADGATE_KEEPALIVED_SUPERVISOR
      # The connection limit follows from it; only root can raise it.
      ulimit -n 524288 2>/dev/null || :
    fi
    ;;
esac
exec /usr/lib/headgate/bin/headgate "$@"
