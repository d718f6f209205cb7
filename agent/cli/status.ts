// `headgate status`: the state of the running agent and its faults. Exit status 1 if the dataplane has a fault.

import type { AddressStatus } from '../address-keeper/address-keeper.ts';
import { agentSocketPath, askAgent } from '../answer/agent-socket.ts';
import type { PairStatus } from '../pair/pair.ts';
import { listenersInWords } from '../report/operating-status.ts';
import type { AgentStatus } from '../report/status.ts';
import type { VrrpStatus } from '../vips/vrrp.ts';
import { print, problemLine, readArguments } from './command-line.ts';

/** Rows of one kind that are shown; --json shows all. */
const MAX_ROWS = 20;
const MAX_REFUSED_VIPS = 5;
/** The width of the column of titles. */
const TITLE_COLUMNS = 17;

export async function status(argv: readonly string[]): Promise<number> {
  const given = readArguments(argv);
  const path = agentSocketPath(given.settings.runtimeDir);
  const agent = (await askAgent(path, 'status')) as AgentStatus;
  print(given, agent, statusLines(agent));
  return agent.fault === '' ? 0 : 1;
}

/** The text of the command. */
export function statusLines(agent: AgentStatus): readonly string[] {
  const { objects, loadBalancers, listeners, members, ignoredServices, problems } = agent;
  const counts = Object.entries(objects).map(([kind, count]) => `${count} ${kind}`);
  const served = `${loadBalancers} (${listeners} listeners, ${members} members)`;
  return [
    `Headgate ${agent.version}, since ${agent.startedAt}`,
    ...apiLines(agent.api),
    ...writingLines(agent.writing),
    row('Objects', counts.join(', ')),
    row('Load balancers', `${served}; ${ignoredServices} Services ignored`),
    ...haproxyLines(agent.haproxy),
    ...addressLines(agent.addresses),
    ...healthLines(agent.operating),
    ...vrrpLines(agent.vrrp),
    ...pairLines(agent.pair),
    row('Problems', `${problems.length || 'none'}`),
    ...firstOf(problems.map(problemLine)),
  ];
}

function row(title: string, text: string): string {
  return `${`${title}:`.padEnd(TITLE_COLUMNS - 1)} ${text}`;
}

/** A row for a text that is '' if there is nothing to report. */
function rowIfAny(title: string, text: string): readonly string[] {
  return text === '' ? [] : [row(title, text)];
}

function firstOf(lines: readonly string[]): readonly string[] {
  const shown = lines.slice(0, MAX_ROWS);
  if (lines.length > MAX_ROWS) shown.push(`... and ${lines.length - MAX_ROWS} more (--json shows all)`);
  return shown.map((line) => `  ${line}`);
}

function apiLines(api: AgentStatus['api']): readonly string[] {
  if (api === undefined) return [];
  const { synced, fault, lastAnswer } = api;
  const last = lastAnswer === '' ? 'no answer yet' : `last answer ${lastAnswer}`;
  if (fault === '') return [row('API server', `${synced ? 'connected' : 'reading all objects'}, ${last}`)];
  const source = synced ? 'serving its last known objects' : 'not read since the start';
  return [row('API server', `${source}, ${last}: ${fault}`)];
}

function writingLines(writing: AgentStatus['writing']): readonly string[] {
  if (writing === undefined) return [];
  const { leading, leader, faults } = writing;
  const writer = leading ? 'this agent' : leader || 'none';
  return [row('Writer', writer), ...faults.map((fault) => `  ${fault}`)];
}

function haproxyLines(haproxy: AgentStatus['haproxy']): readonly string[] {
  const { serving, version, workerPid, maxConnections, reloadPending, serversToDelete } = haproxy;
  const worker = `${version}, worker ${workerPid}, at most ${maxConnections} connections`;
  return [
    row('HAProxy', serving ? worker : 'not serving'),
    ...rowIfAny('Reload due', reloadPending.join(', ')),
    ...rowIfAny('Draining', serversToDelete > 0 ? `${serversToDelete} servers` : ''),
    ...rowIfAny('Fault', haproxy.fault),
    ...rowIfAny('State on disk', haproxy.persistFault),
  ];
}

function addressLines(addresses: AddressStatus): readonly string[] {
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
      const others = conflicting === '0' ? '' : `, ${conflicting} of another pool`;
      return `  pool ${name}, IP${family}: ${free} free, ${used} used, ${held} held${others}`;
    }),
  ];
  if (unkept > 0) lines.push(`  ${unkept} claims not saved yet`);
  if (provisioning > 0) lines.push(`  ${provisioning} addresses not sent to the provisioner yet`);
  return fault === '' ? lines : [...lines, `  ${fault}`];
}

function healthLines({ counts, unwell }: AgentStatus['operating']): readonly string[] {
  const words = (kind: keyof typeof counts): string =>
    Object.entries(counts[kind])
      .filter(([, count]) => count > 0)
      .map(([status, count]) => `${count} ${status}`)
      .join(', ') || 'none';
  return [
    row('Health', `${words('load_balancer')}; members: ${words('member')}`),
    ...firstOf(unwell.map((each) => `${each.key}: ${each.status}, ${listenersInWords(each.listeners)}`)),
  ];
}

function vrrpLines(vrrp: VrrpStatus | undefined): readonly string[] {
  if (vrrp === undefined) return [];
  const { version, pid, instances, lowered, refused, unready, fault } = vrrp;
  return [
    ...instances.map(({ name, state, since, priority, vips }) => {
      const role = `${name} ${state}${since === '' ? '' : ` since ${since}`}`;
      return row('VRRP', `${role}, priority ${priority}, ${vips} VIPs`);
    }),
    row('keepalived', pid === 0 ? 'not running' : `${version}, process ${pid}`),
    ...rowIfAny('Lowered for', lowered.join(', ')),
    ...refused
      .slice(0, MAX_REFUSED_VIPS)
      .map(({ address, reason }) => row('Refused VIPs', `${address}: ${reason}`)),
    ...unready.map(({ what, detail }) => row('Not ready', `${what}: ${detail}`)),
    ...rowIfAny('Fault', fault),
  ];
}

function pairLines(pair: PairStatus | undefined): readonly string[] {
  if (pair === undefined) return [];
  const { lowered, maintenance, peer, peerAddress, peerNotReady, parity, handover, fault } = pair;
  const roles = Object.entries(peer?.roles ?? {}).map(([name, role]) => `${name} ${role}`);
  const connected =
    peer &&
    `${roles.join(', ') || 'without VRRP'}, Headgate ${peer.version}; desired state ${parity.model}, HAProxy ${parity.running}`;
  return [
    ...rowIfAny('Maintenance', maintenance ? 'this host is locked' : ''),
    ...lowered.map(({ reason, message }) => row('Lowered', `${reason}: ${message}`)),
    row('Peer', `${peerAddress}, ${connected ?? 'not connected'}`),
    row('Peer may take over', peerNotReady === '' ? 'yes' : `no: ${peerNotReady}`),
    ...(handover === undefined ? [] : handoverLines(handover)),
    ...rowIfAny('Fault', fault),
  ];
}

function handoverLines({ left, until, whyNot }: NonNullable<PairStatus['handover']>): readonly string[] {
  const lines = rowIfAny('Failover', whyNot && `would close connections: ${whyNot}`);
  if (left === 0 || until === '') return lines;
  const connections =
    left === undefined ? 'connections' : left === 1 ? '1 connection' : `${left} connections`;
  const count = left === undefined ? ', not counted yet' : '';
  return [...lines, row('Draining after failover', `${connections} on this host until ${until}${count}`)];
}
