// To whom each port of each address is open, before its requests are read. Pure.

import type { DesiredState } from '../../model/desired-state.ts';
import type { Listener, LoadBalancer } from '../../model/load-balancer.ts';
import { objectOf } from '../../model/names.ts';
import type { Way } from '../answers/access/check.ts';
import { NO_PROOFS } from '../answers/access/proofs.ts';
import { accessChange } from './access-change.ts';

export interface PortAccessChange {
  readonly kind: 'opens' | 'closes';
  /** `TCP port 443 of 192.0.2.10`. */
  readonly port: string;
  /** The objects that have it; '' for none. */
  readonly ownerBefore: string;
  readonly ownerAfter: string;
  readonly before: string;
  readonly after: string;
}

type State = Pick<DesiredState, 'loadBalancers'>;

export function portAccessChanges(before: State, after: State): readonly PortAccessChange[] {
  const [old, now] = [portsOf(before), portsOf(after)];
  return [...new Set([...old.keys(), ...now.keys()])].flatMap((port) => {
    const [was, is] = [old.get(port), now.get(port)];
    const change = accessChange(was && wayOf(was.listener), is && wayOf(is.listener));
    const { kind } = change;
    const words = { before: change.before, after: change.after };
    if (kind === 'same') return [];
    const [ownerBefore, ownerAfter] = [was, is].map((each) =>
      each === undefined ? '' : objectOf(each.loadBalancer.key),
    );
    return [{ kind, port, ownerBefore: ownerBefore ?? '', ownerAfter: ownerAfter ?? '', ...words }];
  });
}

interface Port {
  readonly loadBalancer: LoadBalancer;
  readonly listener: Listener;
}

export function portsOf({ loadBalancers }: State): ReadonlyMap<string, Port> {
  const ports = new Map<string, Port>();
  for (const loadBalancer of loadBalancers.values())
    for (const listener of loadBalancer.listeners) {
      if (listener.reachedBy === 'routes') continue;
      for (const address of listener.addresses)
        ports.set(`${listener.protocol} port ${listener.port} of ${address}`, { loadBalancer, listener });
    }
  return ports;
}

function wayOf(listener: Listener): Omit<Way, 'client'> {
  return { listener, serverName: '', request: undefined, proofs: NO_PROOFS, atEachHost: '' };
}
