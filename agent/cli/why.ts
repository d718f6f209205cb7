// `headgate why NAMESPACE/SERVICE`: why a Service is served, in part, or not at all.

import { agentSocketPath, askAgent } from '../answer/agent-socket.ts';
import { HeadgateError } from '../base/errors.ts';
import type { ServiceExplanation } from '../report/explain.ts';
import { readQuestion } from './arguments.ts';

export async function why(argv: readonly string[]): Promise<number> {
  const { settings, own, positionals } = readQuestion(argv, {}, ['NAMESPACE/SERVICE']);
  const [service = ''] = positionals;
  if (!/^[^/]+\/[^/]+$/.test(service)) {
    const message = `Cannot look up ${JSON.stringify(service)}: say it as NAMESPACE/SERVICE`;
    throw new HeadgateError('USAGE', message, { retry: 'never' });
  }
  const answer = (await askAgent(agentSocketPath(settings.runtimeDir), 'why', {
    service,
  })) as ServiceExplanation;
  if (own.json) console.log(JSON.stringify(answer, undefined, 2));
  else console.log(inWords(answer).join('\n'));
  return answer.verdict === 'served' ? 0 : 1;
}

function inWords({
  key,
  verdict,
  status,
  addresses,
  reasons,
  listeners,
}: ServiceExplanation): readonly string[] {
  const lines = [`Service ${key}: ${verdict}${status === undefined ? '' : `, ${status}`}`];
  if (addresses.length > 0) lines.push(`Addresses: ${addresses.join(', ')}`);
  for (const reason of reasons) lines.push(`  - ${reason}`);
  for (const listener of listeners) {
    const where = listener.addresses.length > 0 ? listener.addresses.join(', ') : 'no address';
    const notReady = listener.notReady > 0 ? `, ${listener.notReady} endpoints not ready` : '';
    lines.push(
      `${listener.protocol} port ${listener.port} on ${where}: ${listener.status}, ${listener.members.length} members${notReady}`,
    );
    for (const { name, target, state, haproxy, status: own, cause } of listener.members) {
      const other = haproxy === state ? '' : `, HAProxy has it as ${haproxy}`;
      lines.push(`    ${name}${target && ` (${target})`}: ${state}, ${own}${cause && `: ${cause}`}${other}`);
    }
  }
  return lines;
}
