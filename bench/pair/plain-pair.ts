// A pair of hosts without an agent: keepalived and HAProxy with hand-written files, the same intervals and the same VIPs.

import { mkdirSync, writeFileSync } from 'node:fs';
import { startHaproxy } from '../support/haproxy.ts';
import { type Running, start } from '../support/processes.ts';
import type { Bench } from '../support/row.ts';
import type { Scratch } from '../support/scratch.ts';
import { until } from '../support/until.ts';
import { ADVERT_INTERVAL_MS, MEMBER_PORT, otherThan, type PairContender, PORT, vipAt } from './contender.ts';
import { ANCHOR, type HostName, type PairNetwork } from './network.ts';

const HOSTS = ['a', 'b'] as const;

/** Starts both hosts with `count` VIPs. */
export async function startPlainPair(
  bench: Bench,
  scratch: Scratch,
  network: PairNetwork,
  count: number,
): Promise<PairContender> {
  const vips = Array.from({ length: count }, (_, index) => vipAt(index));
  const keepalived = new Map<HostName, Running>();
  let started = 0;
  const startKeepalived = (host: HostName): void => {
    const directory = scratch.path(`plain-${host}`);
    mkdirSync(directory, { recursive: true });
    const file = `${directory}/keepalived.conf`;
    writeFileSync(file, keepalivedConf(network, host, vips));
    const pids = ['-p', `${directory}/pid`, '-r', `${directory}/vrrp.pid`];
    const words = ['chrt', '--rr', '50', 'keepalived', '-P', '-n', '-l', '-f', file, ...pids];
    const [program = '', ...args] = [...network.within(host), ...words];
    keepalived.set(host, start(scratch, `plain-keepalived-${++started}`, program, args, { detached: true }));
  };
  for (const host of HOSTS) {
    const within = network.within(host);
    await startHaproxy(scratch, `plain-${host}`, bench.haproxy, haproxyBody(network, vips), { within });
    startKeepalived(host);
  }
  return {
    name: 'hand-written keepalived',
    settled: async () => {
      let active: HostName = 'a';
      const isActive = (): boolean => {
        const [a, b] = HOSTS.map((host) => network.held(host).length);
        active = b === 0 ? 'a' : 'b';
        return Math.max(a ?? 0, b ?? 0) === count + 1 && Math.min(a ?? 0, b ?? 0) === 0;
      };
      await until('One host holds the VIPs', isActive, { every: 100 });
      return active;
    },
    // keepalived alone has no other way to hand over.
    handOver: async (active) => {
      await keepalived.get(active)?.stop();
    },
    restore: async () => {
      for (const host of HOSTS) if (network.keepalived(host).length === 0) startKeepalived(host);
    },
  };
}

function keepalivedConf(network: PairNetwork, host: HostName, vips: readonly string[]): string {
  return `global_defs {
  vrrp_version 3
  vrrp_garp_master_delay 1
  vrrp_garp_master_repeat 2
  vrrp_garp_lower_prio_repeat 1
  vrrp_higher_prio_send_advert
}
vrrp_instance one {
  state BACKUP
  interface eth0
  virtual_router_id 51
  priority 200
  advert_int ${ADVERT_INTERVAL_MS / 1_000}
  unicast_src_ip ${network.address(host)}
  unicast_peer {
    ${network.address(otherThan(host))}
  }
  virtual_ipaddress {
    ${ANCHOR}/32 dev eth0
  }
  virtual_ipaddress_excluded {
${vips.map((vip) => `    ${vip}/32 dev eth0\n`).join('')}  }
}
`;
}

function haproxyBody(network: PairNetwork, vips: readonly string[]): string {
  return `
frontend all
${vips.map((vip) => `    bind ${vip}:${PORT}\n`).join('')}    default_backend member
backend member
    server member ${network.address('member')}:${MEMBER_PORT}
`;
}
