// How long a replaced worker still accepts connections beside the new one. HAProxy before 3.1 stops the old worker before
// it forks the new one, so that without this time no worker accepts until the new one is ready. A longer time would let
// more clients with session affinity reach a worker without their entries (docs/design/haproxy-versions.md).

export const GRACE_MS = 50;
