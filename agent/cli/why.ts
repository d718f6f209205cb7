// `headgate why NAMESPACE/SERVICE`: why the running agent serves a Service, serves it in part, or does not serve it.

import { agentSocketPath, askAgent } from '../answer/agent-socket.ts';
import type { ServiceExplanation } from '../report/explain.ts';
import { print, readArguments, usageError } from './command-line.ts';

export async function why(argv: readonly string[]): Promise<number> {
  const given = readArguments(argv, {}, ['NAMESPACE/SERVICE']);
  const [service = ''] = given.positionals;
  if (!/^[^/]+\/[^/]+$/.test(service))
    throw usageError(`Cannot look up ${JSON.stringify(service)}: the form is NAMESPACE/SERVICE`);
  const path = agentSocketPath(given.settings.runtimeDir);
  const explanation = (await askAgent(path, 'why', { service })) as ServiceExplanation;
  print(given, explanation, linesOf(explanation));
  return explanation.verdict === 'served' ? 0 : 1;
}

function linesOf(explanation: ServiceExplanation): readonly string[] {
  const { key, verdict, status, addresses, reasons, listeners } = explanation;
  const lines = [`Service ${key}: ${verdict}${status === undefined ? '' : `, ${status}`}`];
  if (addresses.length > 0) lines.push(`Addresses: ${addresses.join(', ')}`);
  for (const reason of reasons) lines.push(`  - ${reason}`);
  for (const listener of listeners) {
    const { protocol, port, members, notReady } = listener;
    const binds = listener.addresses.length > 0 ? listener.addresses.join(', ') : 'no address';
    const counts = `${members.length} members${notReady > 0 ? `, ${notReady} endpoints not ready` : ''}`;
    lines.push(`${protocol} port ${port} on ${binds}: ${listener.status}, ${counts}`);
    for (const { name, target, state, haproxy, status: own, cause } of members) {
      const drift = haproxy === state ? '' : `, HAProxy has it as ${haproxy}`;
      lines.push(`    ${name}${target && ` (${target})`}: ${state}, ${own}${cause && `: ${cause}`}${drift}`);
    }
  }
  return lines;
}
