// Makes a load balancer of a listener of UDP or SCTP that Octavia has pushed: one listener for each family of its VIPs, all of
// them for the kernel. Pure.

import type {
  Algorithm,
  HealthMonitor,
  Listener,
  LoadBalancer,
  OwnerKey,
  Pool,
  Problem,
} from '../../model/load-balancer.ts';
import { keyOf, listenerName, memberName, NO_NAMESPACE, type Owner, objectOf } from '../../model/names.ts';
import { namedMembers } from '../../translate/service/members.ts';
import type { DatagramText, VirtualServer } from './datagram-text.ts';

const ALGORITHMS: Readonly<Record<VirtualServer['algorithm'], Algorithm>> = {
  wrr: 'round-robin',
  lc: 'least-connections',
  sh: 'source-hash',
};
const ALL_CLIENTS = { v4: '0.0.0.0/0', v6: '::/0' } as const;

/** `id`: of Octavia's listener. */
export function datagramKey(id: string): OwnerKey {
  return keyOf(ownerWith(id));
}

export function datagramListener(id: string, server: VirtualServer): string {
  const port = server.vips[0]?.port ?? 0;
  return listenerName(ownerWith(id), { protocol: server.protocol, port }, server.family);
}

/** The name of a member in the model. */
export function datagramMember({
  address,
  port,
}: {
  readonly address: string;
  readonly port: number;
}): string {
  return memberName(address, port);
}

/** Without listeners if the text has no pool, or if its listener is disabled. */
export function datagramBalancer(text: DatagramText): LoadBalancer {
  const { servers, listener: id, isEnabled } = text;
  const served = isEnabled ? servers : [];
  return {
    kind: 'LoadBalancer',
    key: datagramKey(id),
    namespace: NO_NAMESPACE,
    name: id,
    vips: served.flatMap(({ family, vips }) =>
      vips.map(({ address }) => ({ address, family, source: 'pushed' as const })),
    ),
    listeners: served.map((server) => listenerOf(id, server)),
    problems: problemsOf(text),
  };
}

function listenerOf(id: string, server: VirtualServer): Listener {
  const { family, protocol, vips } = server;
  const port = vips[0]?.port ?? 0;
  return {
    name: datagramListener(id, server),
    labels: { namespace: NO_NAMESPACE, service: id, port: String(port), protocol, family },
    engine: 'kernel',
    sourceAddress: 'load-balancer',
    reachedBy: 'clients',
    routing: undefined,
    protocol,
    port,
    portName: '',
    family,
    addresses: [...new Set(vips.map(({ address }) => address))],
    mode: 'tcp',
    tls: undefined,
    acceptProxy: false,
    allowedCidrs: [ALL_CLIENTS[family]],
    connectionLimit: 0,
    rateLimit: 0,
    clientTimeout: 0,
    log: 'none',
    pool: poolOf(server),
  };
}

function poolOf(server: VirtualServer): Pool {
  const { algorithm, persistence, members } = server;
  return {
    algorithm: ALGORITHMS[algorithm],
    persistence: persistence?.seconds ?? 0,
    persistencePrefix: persistence?.prefix,
    monitor: monitorOf(server),
    tls: undefined,
    httpVersion: '1.1',
    cookie: '',
    proxyProtocol: 'none',
    timeouts: { connect: 0, server: 0, tunnel: 0, queue: 0 },
    memberConnectionLimit: 0,
    whenEmpty: 'reject',
    // As the kernel's virtual server of the reference, which has no members then.
    whenAllDown: 'reject',
    members: namedMembers(
      members.map(({ address, port, weight }) => ({ address, port, weight, state: 'ready', target: '' })),
    ),
  };
}

/** What people see of the checks, which DatagramChecks makes. */
function monitorOf({ members, delay, fall }: VirtualServer): HealthMonitor | undefined {
  const check = members.find((each) => each.check !== undefined)?.check;
  if (check === undefined) return undefined;
  return {
    // Not "udp", which the dataplane would probe itself, at the member's own place.
    type: check.kind === 'http' ? 'http' : 'tcp',
    path: check.path,
    method: check.kind === 'http' ? 'GET' : '',
    expectedCodes: check.codes.join(','),
    ...{ expectedBody: '', expectedBodyPattern: '', host: '', sni: '', grpcService: '' },
    interval: delay * 1_000,
    timeout: check.timeout * 1_000,
    rise: 1,
    fall,
    port: 0,
  };
}

/** What the kernel path does otherwise than the text says. */
function problemsOf({ listener, servers }: DatagramText): readonly Problem[] {
  const object = objectOf(datagramKey(listener));
  const problem = (message: string): Problem => ({ object, reason: 'OptionIgnored', message });
  return [
    ...(servers.some(({ algorithm }) => algorithm === 'lc')
      ? [
          problem(
            'Cannot choose the member with the least connections (lb_algo lc): the hash of a flow chooses it',
          ),
        ]
      : []),
    ...(servers.some(({ members }) => members.some(({ limit }) => limit > 0))
      ? [problem('Cannot limit the flows of a member (uthreshold): there is no limit')]
      : []),
  ];
}

function ownerWith(id: string): Owner {
  return { kind: 'Datagrams', namespace: NO_NAMESPACE, name: id };
}
