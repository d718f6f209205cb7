// `headgate status`: what the running agent does, in numbers, and what is wrong.

import type { AddressStatus } from '../address-keeper/address-keeper.ts';
import { agentSocketPath, askAgent } from '../answer/agent-socket.ts';
import type { PairStatus } from '../pair/pair.ts';
import { listenersInWords } from '../report/operating-status.ts';
import type { AgentStatus } from '../report/status.ts';
import type { VrrpStatus } from '../vips/vrrp.ts';
import { readQuestion } from './arguments.ts';
import { problemLine } from './problem-line.ts';

export async function status(argv: readonly string[]): Promise<number> {
  const { settings, own } = readQuestion(argv);
  const answer = (await askAgent(agentSocketPath(settings.runtimeDir), 'status')) as AgentStatus;
  if (own.json) console.log(JSON.stringify(answer, undefined, 2));
  else console.log(inWords(answer).join('\n'));
  return answer.fault === '' ? 0 : 1;
}

function inWords(answer: AgentStatus): readonly string[] {
  const { objects, haproxy } = answer;
  const counts = Object.entries(objects).map(([kind, count]) => `${count} ${kind}`);
  const lines = [
    `Headgate ${answer.version}, since ${answer.startedAt}`,
    ...apiInWords(answer.api),
    ...writingInWords(answer.writing),
    `Objects:         ${counts.join(', ')}`,
    `Load balancers:  ${answer.loadBalancers} (${answer.listeners} listeners, ${answer.members} members); ${answer.ignoredServices} Services are not ours`,
    `HAProxy:         ${haproxy.serving ? `${haproxy.version}, worker ${haproxy.workerPid}, at most ${haproxy.maxConnections} connections` : 'not serving'}`,
  ];
  lines.push(...ofAddresses(answer.addresses));
  lines.push(...operatingInWords(answer.operating));
  if (haproxy.reloadPending.length > 0) lines.push(`Reload due:      ${haproxy.reloadPending.join(', ')}`);
  if (haproxy.serversToDelete > 0) lines.push(`Draining:        ${haproxy.serversToDelete} servers`);
  if (haproxy.fault !== '') lines.push(`Fault:           ${haproxy.fault}`);
  if (haproxy.persistFault !== '') lines.push(`State on disk:   ${haproxy.persistFault}`);
  if (answer.vrrp !== undefined) lines.push(...vrrpInWords(answer.vrrp));
  if (answer.pair !== undefined) lines.push(...pairInWords(answer.pair));
  lines.push(`Problems:        ${answer.problems.length || 'none'}`);
  for (const problem of answer.problems.slice(0, 20)) lines.push(`  ${problemLine(problem)}`);
  if (answer.problems.length > 20)
    lines.push(`  ... and ${answer.problems.length - 20} more (--json shows all)`);
  return lines;
}

function apiInWords(api: AgentStatus['api']): readonly string[] {
  if (api === undefined) return [];
  if (api.fault === '') return [`API server:      ${api.synced ? 'followed' : 'being read'}`];
  return [
    `API server:      ${api.synced ? 'what it said last counts' : 'not read since the start'}: ${api.fault}`,
  ];
}

function writingInWords(writing: AgentStatus['writing']): readonly string[] {
  if (writing === undefined) return [];
  const { leading, leader, faults } = writing;
  const who = leading ? 'this agent' : leader === '' ? 'nobody' : leader;
  return [`Writer:          ${who}`, ...faults.map((fault) => `  ${fault}`)];
}

function operatingInWords({ counts, unwell }: AgentStatus['operating']): readonly string[] {
  const words = (kind: keyof typeof counts): string =>
    Object.entries(counts[kind])
      .filter(([, count]) => count > 0)
      .map(([status, count]) => `${count} ${status}`)
      .join(', ') || 'none';
  const lines = [`Operating:       ${words('load_balancer')}; members: ${words('member')}`];
  for (const { key, status, listeners } of unwell.slice(0, 20)) {
    lines.push(`  ${key}: ${status}, ${listenersInWords(listeners)}`);
  }
  if (unwell.length > 20) lines.push(`  ... and ${unwell.length - 20} more (--json shows all)`);
  return lines;
}

function vrrpInWords({ version, pid, instances, lowered, refused, fault }: VrrpStatus): readonly string[] {
  const lines = instances.map(
    ({ name, state, since, priority, vips }) =>
      `VRRP:            ${name} ${state}${since === '' ? '' : ` since ${since}`}, priority ${priority}, ${vips} VIPs`,
  );
  lines.push(`keepalived:      ${pid === 0 ? 'not running' : `${version}, process ${pid}`}`);
  if (lowered.length > 0) lines.push(`Lowered for:     ${lowered.join(', ')}`);
  for (const { address, reason } of refused.slice(0, 5)) lines.push(`Not a VIP:       ${address}: ${reason}`);
  if (fault !== '') lines.push(`Fault:           ${fault}`);
  return lines;
}

function pairInWords(pair: PairStatus): readonly string[] {
  const { lowered, maintenance, peer, peerAddress, peerNotReady, parity, handover, fault } = pair;
  const rolesOf = (of: PairStatus['roles']): string =>
    Object.entries(of)
      .map(([name, role]) => `${name} ${role}`)
      .join(', ') || 'without VRRP';
  const lines = maintenance ? ['Maintenance:     this host is locked'] : [];
  for (const { reason, message } of lowered) lines.push(`Lowered:         ${reason}: ${message}`);
  if (peer === undefined) {
    lines.push(`Peer:            ${peerAddress}, not heard`);
  } else {
    const same = `desired state ${parity.model}, HAProxy ${parity.running}`;
    lines.push(`Peer:            ${peerAddress}, ${rolesOf(peer.roles)}, Headgate ${peer.version}; ${same}`);
  }
  lines.push(`Peer may take over: ${peerNotReady === '' ? 'yes' : `no: ${peerNotReady}`}`);
  if (handover !== undefined) lines.push(...handoverInWords(handover));
  if (fault !== '') lines.push(`Fault:           ${fault}`);
  return lines;
}

function handoverInWords({ left, until, whyNot }: NonNullable<PairStatus['handover']>): readonly string[] {
  const lines = whyNot === '' ? [] : [`Failover:        cuts connections: ${whyNot}`];
  if (left === 0 || until === '') return lines;
  const count = left === -1 ? 'connections go' : left === 1 ? '1 connection goes' : `${left} connections go`;
  return [...lines, `Handed over:     ${count} on here until ${until}`];
}

function ofAddresses({
  home,
  leading,
  pools,
  unkept,
  provisioning,
  fault,
}: AddressStatus): readonly string[] {
  if (pools.length === 0 && unkept === 0) return [];
  const where = {
    cluster: 'claims in the cluster',
    file: 'claims in a file',
    unknown: 'claims as last known',
  };
  const lines = [
    `Addresses:       ${where[home]}, ${leading ? 'given by this host' : 'given by another host'}`,
  ];
  for (const { name, family, free, used, held, conflicting } of pools) {
    const others = conflicting === 0 ? '' : `, ${conflicting} of another pool`;
    lines.push(`  pool ${name}, IP${family}: ${free} free, ${used} used, ${held} held${others}`);
  }
  if (unkept > 0) lines.push(`  ${unkept} claims have yet to be kept`);
  if (provisioning > 0) lines.push(`  ${provisioning} addresses have yet to be told to the provisioner`);
  if (fault !== '') lines.push(`  ${fault}`);
  return lines;
}
