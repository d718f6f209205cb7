#!/bin/sh
# The package's command. Only the agent's unit has a compile cache, because a user must not run code that another user
# could have written.
if [ -z "${NODE_COMPILE_CACHE:-}" ]; then
  NODE_DISABLE_COMPILE_CACHE=1
  export NODE_DISABLE_COMPILE_CACHE
fi

named=${HEADGATE_CONFIG:-}
for word in "$@"; do
  case $word in
    --config | --config=*) named=$word ;;
  esac
done

case ${1:-} in
  # They read settings: without a named file those of headgate.service, including its variables. A user without write
  # access to the agent's folder gets the defaults.
  check | render | release)
    if [ -z "$named" ] && [ -r /etc/headgate/headgate.yaml ] && [ -w /var/lib/headgate ]; then
      HEADGATE_CONFIG=/etc/headgate/headgate.yaml
      HEADGATE_STATE_DIR=${HEADGATE_STATE_DIR:-/var/lib/headgate}
      HEADGATE_RUNTIME_DIR=${HEADGATE_RUNTIME_DIR:-/run/headgate}
      HEADGATE_HAPROXY_SUPERVISOR=${HEADGATE_HAPROXY_SUPERVISOR:-external}
      HEADGATE_HAPROXY_ACCESS=${HEADGATE_HAPROXY_ACCESS:-group}
      HEADGATE_KEEPALIVED_SUPERVISOR=${HEADGATE_KEEPALIVED_SUPERVISOR:-external}
      HEADGATE_CONNTRACKD_SUPERVISOR=${HEADGATE_CONNTRACKD_SUPERVISOR:-external}
      HEADGATE_BIRD_SUPERVISOR=${HEADGATE_BIRD_SUPERVISOR:-external}
      export HEADGATE_CONFIG HEADGATE_STATE_DIR HEADGATE_RUNTIME_DIR
      export HEADGATE_HAPROXY_SUPERVISOR HEADGATE_HAPROXY_ACCESS HEADGATE_KEEPALIVED_SUPERVISOR
      export HEADGATE_CONNTRACKD_SUPERVISOR HEADGATE_BIRD_SUPERVISOR
      # The connection limit follows from it; only root can raise it.
      ulimit -n 524288 2>/dev/null || :
    fi
    ;;
  # They ask the agent of headgate.service, also for a user whose own agent would be elsewhere.
  list | status | why | failover | maintenance | complete)
    if [ -z "$named" ] && [ -d /run/headgate ]; then
      HEADGATE_RUNTIME_DIR=${HEADGATE_RUNTIME_DIR:-/run/headgate}
      export HEADGATE_RUNTIME_DIR
    fi
    ;;
esac
exec /usr/lib/headgate/bin/headgate "$@"
