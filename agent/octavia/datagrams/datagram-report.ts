// What the heartbeat reports of a pushed listener of UDP or SCTP. Pure.

import type { MemberFact } from '../../dataplane/forwarder.ts';
import type { DatagramListener, DatagramMemberStatus } from '../parts.ts';
import { datagramListener, datagramMember } from './datagram-balancer.ts';
import type { DatagramMember, DatagramText } from './datagram-text.ts';
import type { Traffic } from './kernel-server.ts';

export interface Facts {
  /** Members of a listener of the model that have been found up or down, by name. */
  readonly members: (listener: string) => ReadonlyMap<string, MemberFact>;
  /** Totals, by listener of the model. */
  readonly traffic: ReadonlyMap<string, Traffic>;
}

const NOTHING: Traffic = { received: 0, sent: 0, flows: 0 };

export function reportedListener(text: DatagramText, { members, traffic }: Facts): DatagramListener {
  const { listener: id, servers } = text;
  const names = servers.map((server) => datagramListener(id, server));
  const counted = names.map((name) => traffic.get(name) ?? NOTHING);
  const sum = (field: keyof Traffic): number => counted.reduce((total, each) => total + each[field], 0);
  const statuses = new Map<string, DatagramMemberStatus>();
  const checked: boolean[] = [];
  for (const [at, server] of servers.entries()) {
    const facts = members(names[at] ?? '');
    for (const member of server.members) {
      const isDown = facts.get(datagramMember(member))?.isDown === true;
      if (member.check !== undefined) checked.push(!isDown);
      statuses.set(member.id, statusOf(member, isDown));
    }
    for (const member of server.disabled) statuses.set(member, 'MAINT');
  }
  const pool = servers[0]?.pool;
  const status = checked.length > 0 && !checked.includes(true) ? 'DOWN' : 'UP';
  return {
    id,
    stats: { tx: sum('sent'), rx: sum('received'), conns: 0, totconns: sum('flows') },
    pool: pool?.isEnabled === true ? { id: pool.id, status, members: statuses } : undefined,
  };
}

function statusOf({ weight, check }: DatagramMember, isDown: boolean): DatagramMemberStatus {
  if (check !== undefined && isDown) return 'DOWN';
  if (weight === 0) return 'DRAIN';
  return check === undefined ? 'no check' : 'UP';
}
