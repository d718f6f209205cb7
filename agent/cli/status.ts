// `headgate status`: the state of the running agent and its faults. Exit status 1 if the dataplane has a fault.

import type { AddressStatus } from '../address-keeper/address-keeper.ts';
import { agentSocketPath, askAgent } from '../answer/agent-socket.ts';
import { counted } from '../base/counted.ts';
import { HeadgateError } from '../base/errors.ts';
import { version } from '../base/version.ts';
import { objectOf } from '../model/names.ts';
import type { OperatingStatus } from '../model/operating-status.ts';
import type { AmphoraStatus } from '../octavia/report/amphora-report.ts';
import type { HostStatus, HostsStatus } from '../pair/host-links.ts';
import type { PairStatus } from '../pair/pair.ts';
import type { AgentStatus } from '../report/answers/status.ts';
import { listenersInWords } from '../report/operating/operating-status.ts';
import type { BgpStatus } from '../vips/bgp.ts';
import type { VrrpStatus } from '../vips/vrrp.ts';
import { amphoraStatusLines, isAmphora } from './amphora-lines.ts';
import { type Command, JSON_FLAG, NO_AGENT } from './command.ts';
import { print, problemLine } from './command-line.ts';
import { bad, type Line, type Part, statusPart, title } from './text.ts';

/** Rows of one kind that are shown; --json shows all. */
const MAX_ROWS = 20;
const MAX_REFUSED_VIPS = 5;
/** The width of the column of titles. */
const TITLE_COLUMNS = 21;

export const status: Command = {
  name: 'status',
  purpose: 'show the state of the running agent',
  details: [
    'Problems and load balancers that are not well are named, the worst first; "headgate list" has all.',
  ],
  flags: JSON_FLAG,
  settings: 'place',
  exits: { 0: 'healthy', 1: 'a fault of the dataplane, of VRRP or of the pair', 3: NO_AGENT },
  examples: [
    { line: 'headgate status', doc: 'objects, HAProxy, addresses, health, VRRP, peer and problems' },
    { line: 'headgate status --json | jq -r .fault', doc: 'the fault for a script, empty if there is none' },
  ],
  run: async (given) => {
    const path = agentSocketPath(given.settings.runtimeDir);
    const agent = (await askAgent(path, 'status')) as AgentStatus | AmphoraStatus;
    if (isAmphora(agent)) {
      print(given, agent, amphoraStatusLines(agent));
      return agent.fault === '' ? 0 : 1;
    }
    print(given, agent, given.own.json ? [] : readableLines(agent));
    return agent.fault === '' ? 0 : 1;
  },
};

/** As statusLines(). An agent of another version may answer in another form. Errors: QUESTION_FAILED. */
export function readableLines(agent: AgentStatus): readonly Line[] {
  try {
    return statusLines(agent);
  } catch (cause) {
    const message = `Cannot read the answer of the running agent, version ${agent.version} (this command: ${version}): restart the agent after an upgrade, or use --json`;
    throw new HeadgateError('QUESTION_FAILED', message, { retry: 'never', cause });
  }
}

/** The text of the command. */
export function statusLines(agent: AgentStatus): readonly Line[] {
  const { objects, loadBalancers, pools, listeners, members, ignoredServices, problems } = agent;
  const counts = Object.entries(objects).flatMap(([kind, count]) =>
    count === 0 ? [] : counted(count, kind),
  );
  const ofRoutes = pools > 0 ? `, ${counted(pools, 'pool')} of routes` : '';
  const served = `${loadBalancers} (${counted(listeners, 'listener')}, ${counted(members, 'member')}${ofRoutes})`;
  return [
    `Headgate ${agent.version}, since ${agent.startedAt}`,
    ...apiLines(agent.api),
    ...releasedLines(agent.released),
    ...writingLines(agent.writing),
    row('Objects', counts.join(', ') || 'none'),
    row('Load balancers', `${served}; ${counted(ignoredServices, 'Service')} ignored`),
    ...haproxyLines(agent.haproxy),
    ...diskLines(agent.disk),
    ...addressLines(agent.addresses),
    ...healthLines(agent.operating),
    ...vrrpLines(agent.vrrp, agent.pair !== undefined),
    ...bgpLines(agent.bgp),
    ...pairLines(agent.pair),
    ...hostsLines(agent.hosts),
    ...connectionSyncLines(agent.connectionSync),
    ...egressLines(agent.egress),
    row('Problems', `${problems.length || 'none'}`),
    ...firstOf(problems.map((problem) => [problemLine(problem)])),
  ];
}

function row(name: string, ...parts: readonly Part[]): Line {
  return [title(`${name}:`), ' '.repeat(Math.max(1, TITLE_COLUMNS - name.length - 1)), ...parts];
}

/** A row for a text that is '' if there is nothing to report. */
function rowIfAny(name: string, text: string): readonly Line[] {
  return text === '' ? [] : [row(name, text)];
}

function faultRow(text: string): readonly Line[] {
  return text === '' ? [] : [row('Fault', bad(text))];
}

function firstOf(rows: readonly (readonly Part[])[]): readonly Line[] {
  const shown = rows.slice(0, MAX_ROWS).map((parts): Line => ['  ', ...parts]);
  if (rows.length > MAX_ROWS) shown.push(`  ... and ${rows.length - MAX_ROWS} more (--json shows all)`);
  return shown;
}

function apiLines(api: AgentStatus['api']): readonly Line[] {
  if (api === undefined) return [];
  const { synced, fault, lastAnswer, lostSince } = api;
  const last = lastAnswer === '' ? 'no answer yet' : `last answer ${lastAnswer}`;
  if (fault === '') return [row('API server', `${synced ? 'connected' : 'reading all objects'}, ${last}`)];
  const source = synced ? 'serving its last known objects' : 'not read since the start';
  const lost = `no API server has answered since ${lostSince}: the cluster may be gone; this host serves on`;
  return [
    row('API server', `${source}, ${last}: ${fault}`),
    ...(lostSince ? [row('Cluster', bad(lost))] : []),
  ];
}

function releasedLines(released: AgentStatus['released']): readonly Line[] {
  if (released === undefined) return [];
  const what = released.all ? 'everything' : `namespaces ${released.namespaces.join(', ')}`;
  const since = new Date(released.at).toISOString().replace('.000', '');
  return [row('Released', bad(`${what}, since ${since}: "headgate release --undo" ends that`))];
}

function writingLines(writing: AgentStatus['writing']): readonly Line[] {
  if (writing === undefined) return [];
  const { leading, leader, faults } = writing;
  const writer = leading ? 'this agent' : leader || 'none';
  return [row('Writer', writer), ...faults.map((fault) => `  ${fault}`)];
}

function haproxyLines(haproxy: AgentStatus['haproxy']): readonly Line[] {
  const { serving, version, workerPid, maxConnections, reloadPending, serversToDelete, landed } = haproxy;
  const worker = `${version}, worker ${workerPid}, at most ${maxConnections} connections`;
  return [
    row('HAProxy', serving ? worker : 'not serving'),
    ...rowIfAny('Landing', landed > 0 ? counted(landed, 'load balancer') : ''),
    ...rowIfAny('Reload due', reloadPending.join(', ')),
    ...rowIfAny('Draining', serversToDelete > 0 ? counted(serversToDelete, 'server') : ''),
    ...faultRow(haproxy.fault),
    ...faultRow(haproxy.unserved),
  ];
}

function diskLines({ folder, files }: AgentStatus['disk']): readonly Line[] {
  const faults = files.filter(({ fault }) => fault !== '');
  const [first, ...others] = faults.map(({ fault }) => bad(fault));
  if (first !== undefined)
    return [row('State on disk', first), ...others.map((fault): Line => ['  ', fault])];
  const last = Math.max(0, ...files.map(({ writtenAt }) => writtenAt));
  const written = last === 0 ? 'not written since the start' : `last written ${new Date(last).toISOString()}`;
  return [row('State on disk', `${folder}, ${written}`)];
}

function addressLines(addresses: AddressStatus): readonly Line[] {
  const { home, leading, pools, unkept, provisioning, fault } = addresses;
  if (pools.length === 0 && unkept === 0) return [];
  const claims = {
    cluster: 'claims in the cluster',
    file: 'claims in a file',
    unknown: 'claims as last read',
  };
  const lines = [
    row('Addresses', `${claims[home]}, allocated by ${leading ? 'this host' : 'another host'}`),
    ...pools.map(({ name, family, free, used, held, conflicting }) => {
      const others = conflicting === '0' ? '' : `, ${conflicting} of another pool or a Node`;
      return `  pool ${name}, IP${family}: ${free} free, ${used} used, ${held} held${others}`;
    }),
  ];
  if (unkept > 0) lines.push(`  ${counted(unkept, 'claim')} not saved yet`);
  if (provisioning > 0)
    lines.push(
      `  ${provisioning} ${provisioning === 1 ? 'address' : 'addresses'} not sent to the provisioner yet`,
    );
  return fault === '' ? lines : [...lines, `  ${fault}`];
}

function healthLines({ counts, unwell }: AgentStatus['operating']): readonly Line[] {
  const worstFirst = SEVERITY.flatMap((status) => unwell.filter((each) => each.status === status));
  return [
    row('Health', ...countsOf(counts.load_balancer), '; members: ', ...countsOf(counts.member)),
    ...firstOf(
      worstFirst.map(({ key, status, listeners }) => [
        `${objectOf(key)}: `,
        statusPart(status),
        listeners.length === 0 ? ', no address' : `, ${listenersInWords(listeners)}`,
      ]),
    ),
  ];
}

/** The statuses of load balancers that are named, the worst first. */
const SEVERITY: readonly OperatingStatus[] = ['ERROR', 'OFFLINE', 'DEGRADED'];

function countsOf(counts: Readonly<Record<OperatingStatus, number>>): readonly Part[] {
  const found = (Object.entries(counts) as [OperatingStatus, number][]).filter(([, count]) => count > 0);
  if (found.length === 0) return ['none'];
  return found.flatMap(([status, count], at) => [`${at > 0 ? ', ' : ''}${count} `, statusPart(status)]);
}

/** With a pair its rows say what lowers the host. */
function vrrpLines(vrrp: VrrpStatus | undefined, isPair: boolean): readonly Line[] {
  if (vrrp === undefined) return [];
  const { version, pid, instances, lowered, refused, unready, fault } = vrrp;
  return [
    ...instances.map(({ name, state, since, priority, vips }) => {
      const role = state === 'fault' ? bad(`${name} is in fault`) : `${name} ${state}`;
      return row(
        'VRRP',
        role,
        `${since === '' ? '' : ` since ${since}`}, priority ${priority}, ${counted(vips, 'VIP')}`,
      );
    }),
    row('keepalived', pid === 0 ? 'not running' : `${version}, process ${pid}`),
    ...authLines(vrrp.auth),
    ...rowIfAny('Lowered for', isPair ? '' : lowered.join(', ')),
    ...refused
      .slice(0, MAX_REFUSED_VIPS)
      .map(({ address, reason }) => row('Refused VIPs', `${address}: ${reason}`)),
    ...unready.map(({ what, detail }) => row('Not ready', `${what}: ${detail}`)),
    ...faultRow(fault),
  ];
}

/** Nothing without a key: as every keepalived before 2.4. */
function authLines({ level, key, why }: VrrpStatus['auth']): readonly Line[] {
  if (level === 'off' && why === '') return [];
  const words = {
    off: 'none',
    receive: 'checked, not signed yet',
    sign: 'signed, not enforced yet',
    enforce: 'enforced',
  };
  const state = level === 'enforce' ? `enforced, key ${key}` : bad(words[level]);
  return [row('Advertisements', state, why === '' ? '' : `: ${why}`)];
}

function bgpLines(bgp: BgpStatus | undefined): readonly Line[] {
  if (bgp === undefined) return [];
  const { version, pid, asn, sessions, vips, unreached, lowered, unready, passing, fault } = bgp;
  const worn = [
    `${counted(vips.first, 'VIP')} announced`,
    ...(vips.last > 0 ? [`${vips.last} as the last choice`] : []),
    ...(vips.withheld > 0 ? [`${vips.withheld} withheld`] : []),
  ];
  return [
    row(
      'BGP',
      `AS ${asn}, ${worn.join(', ')}`,
      ...(unreached > 0 ? [', ', bad(`${unreached} that no router has`)] : []),
    ),
    ...sessions.map(({ peer, address, asn: theirs, state, since, why, routes, bfd }): Line => {
      const router = `  router ${peer}, ${address}, AS ${theirs}: `;
      if (state !== 'Established') return [router, bad(why), since === '' ? '' : `, since ${since}`];
      const withBfd = bfd === '' ? '' : `, BFD ${bfd.toLowerCase()}`;
      return [`${router}established since ${since}, ${counted(routes.v4 + routes.v6, 'route')}${withBfd}`];
    }),
    row('BIRD', pid === 0 ? 'not running' : `${version}, process ${pid}`),
    ...(passing.next === '' && passing.adopted === 0 ? [] : [passingLine(passing)]),
    ...rowIfAny('Lowered for', lowered.join(', ')),
    ...unready.map(({ what, detail }) => row('Not ready', `${what}: ${detail}`)),
    ...faultRow(fault),
  ];
}

function passingLine({ next, passed, adopted, strays, limited }: BgpStatus['passing']): Line {
  const dropped = limited > 0 ? `, ${limited} dropped because too many came` : '';
  const taken = adopted > 0 ? `; ${counted(adopted, 'connection')} of dead hosts taken over` : '';
  return row(
    'Passing',
    `packets of other hosts' connections to ${next || 'no host'}: ${passed} passed on, ${strays} of no connection${dropped}${taken}`,
  );
}

function pairLines(pair: PairStatus | undefined): readonly Line[] {
  if (pair === undefined) return [];
  const { lowered, peer, peerAddress, peerNotReady, parity, handover, fault } = pair;
  const roles = Object.entries(peer?.roles ?? {}).map(([name, role]) => `${name} ${role}`);
  const connected =
    peer &&
    `${roles.join(', ') || 'without VRRP'}, Headgate ${peer.version}; desired state ${parity.model}, HAProxy ${parity.running}`;
  return [
    ...lowered.map(({ reason, message }) => row('Lowered', `${reason}: ${message}`)),
    row('Peer', `${peerAddress}, ${connected ?? 'not connected'}`),
    row('Peer may take over', takeoverInWords(peerNotReady, Object.values(peer?.roles ?? {}))),
    ...(handover === undefined ? [] : handoverLines(handover)),
    ...faultRow(fault),
  ];
}

function hostsLines(status: HostsStatus | undefined): readonly Line[] {
  if (status === undefined) return [];
  const { hosts, fault } = status;
  const serve = hosts.filter(({ fault: why, lowered }) => why === '' && lowered.length === 0).length;
  return [
    row('Hosts', `${hosts.length}, ${serve} of them connected and not lowered`),
    ...hosts.map((host): Line => [`  ${host.name}, ${host.address}: `, ...hostParts(host)]),
    ...faultRow(fault),
  ];
}

function hostParts({
  isSelf,
  fault,
  bfd,
  version: theirs,
  lowered,
  pending,
  parity,
}: HostStatus): readonly Part[] {
  const more = [
    ...(bfd === '' ? [] : [`BFD ${bfd}`]),
    ...(lowered.length === 0 ? [] : [`lowered: ${lowered.join(', ')}`]),
    ...(pending === 0 ? [] : [`${counted(pending, 'load balancer')} pending`]),
  ];
  if (fault !== '') return [bad('not connected'), `: ${[fault, ...more].join(', ')}`];
  const alike = isSelf
    ? `this host, HAProxy ${parity.running === 'same' ? 'as desired' : parity.running}`
    : `connected, desired state ${parity.model}, HAProxy ${parity.running}`;
  return [[alike, `Headgate ${theirs}`, ...more].join(', ')];
}

function takeoverInWords(peerNotReady: string, roles: readonly string[]): string {
  if (peerNotReady !== '') return `no: ${peerNotReady}`;
  return roles.length > 0 && roles.every((role) => role === 'master') ? 'it has the VIPs already' : 'yes';
}

/** An agent of a release before has none. */
function egressLines(egress: AgentStatus['egress']): readonly Line[] {
  if (egress === undefined) return [];
  const { pods, vips, fault } = egress;
  const words = `connections of ${counted(pods, 'pod')} leave from ${counted(vips, 'VIP')}`;
  return [['Egress: ', ...(fault === '' ? [words] : [bad(fault)])]];
}

function connectionSyncLines(sync: AgentStatus['connectionSync']): readonly Line[] {
  if (sync === undefined) return [];
  const { version, pid, peer, isPeerHeard, fault } = sync;
  const heard = `peer ${peer} ${isPeerHeard ? 'sends its flows' : 'sends nothing'}`;
  return [
    row('conntrackd', pid === 0 ? 'not running' : `${version}, process ${pid}, ${heard}`),
    ...faultRow(fault),
  ];
}

function handoverLines({ left, until, whyNot }: NonNullable<PairStatus['handover']>): readonly Line[] {
  const lines = rowIfAny('Failover', whyNot && `would close connections: ${whyNot}`);
  if (left === 0 || until === '') return lines;
  const connections = left === undefined ? 'connections' : counted(left, 'connection');
  const count = left === undefined ? ', not counted yet' : '';
  return [...lines, row('After failover', `${connections} on this host until ${until}${count}`)];
}
