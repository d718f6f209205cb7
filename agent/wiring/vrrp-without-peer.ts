// How a host stands that has VRRP but no peer to talk to: it gives way while HAProxy serves nothing.

import type { HaproxyDataplane } from '../haproxy/dataplane.ts';
import type { KeepalivedDataplane } from '../vips/keepalived/dataplane.ts';

/** Milliseconds between two looks; HAProxy has to be absent at two of them. */
const LOOK = 500;

/** Looks until it is closed. */
export function standAlone(
  haproxy: Pick<HaproxyDataplane, 'status'>,
  keepalived: Pick<KeepalivedDataplane, 'standing'>,
): { close(): void } {
  let wasServing = haproxy.status().serving;
  const look = (): void => {
    const isServing = haproxy.status().serving;
    if (isServing === wasServing) keepalived.standing(isServing ? [] : ['haproxy']);
    wasServing = isServing;
  };
  look();
  const timer = setInterval(look, LOOK).unref();
  return { close: () => clearInterval(timer) };
}
