// Reads a line that HAProxy writes for the agent: a request that failed, in one of the formats of listeners, or a member that a
// probe has found up or down. Pure. Clients control parts of a line, so a member's name counts only if the agent knows it.

import type { Ejection } from '../../model/load-balancer.ts';

export interface RequestError {
  readonly kind: 'error';
  readonly member: string;
  /** HAProxy's name of the pool that sent to it. */
  readonly backend: string;
  /** How it ended, such as `sH`: see section 8.5 of HAProxy's configuration manual. */
  readonly ended: string;
  /** NaN in mode tcp. */
  readonly status: number;
}

export interface ProbeResult {
  readonly kind: 'probe';
  /** The name of the probe, as the agent has named it. */
  readonly probe: string;
  readonly passes: boolean;
}

const OWN = /^headgate (\S+) (\S+) (\S\S) (\S+)$/;
const PROBE = /^Server headgate:(?:probes|connections)\/(\S+) is (UP|DOWN), (reason|changed)/;
/** The formats `httplog` and `tcplog`, whose server follows the last slash of its word. */
const HTTP = /^\S+ \[[^\]]{1,40}\] \S+ (\S+)\/(\S+) [-+\d/]+ (-?\d{1,3}) \+?\d+ \S+ \S+ (\S\S)\S\S /;
const TCP = /^\S+ \[[^\]]{1,40}\] \S+ (\S+)\/(\S+) [-+\d/]+ \+?\d+ (\S\S) /;

/** undefined for any other line, and for a request that no member got. */
export function parseErrorLine(line: string): RequestError | ProbeResult | undefined {
  if (line.startsWith('Server ')) {
    const [, probe, state, why] = PROBE.exec(line) ?? [];
    // The agent itself changes the state of a probe by command.
    return probe === undefined || why !== 'reason'
      ? undefined
      : { kind: 'probe', probe, passes: state === 'UP' };
  }
  const { backend, member, ended, status } = fieldsOf(line);
  if (backend === undefined || member === undefined || ended === undefined) return undefined;
  if (member.startsWith('<')) return undefined;
  return { kind: 'error', backend, member, ended: ended.slice(0, 2), status: Number(status) };
}

interface Fields {
  readonly backend?: string | undefined;
  readonly member?: string | undefined;
  readonly ended?: string | undefined;
  readonly status?: string | number | undefined;
}

function fieldsOf(line: string): Fields {
  if (line.startsWith('headgate ')) {
    const [, backend, member, ended, status] = OWN.exec(line) ?? [];
    return { backend, member, ended, status };
  }
  if (line.startsWith('{')) return fieldsOfJson(line);
  const http = HTTP.exec(line);
  if (http !== null) return { backend: http[1], member: http[2], status: http[3], ended: http[4] };
  const tcp = TCP.exec(line);
  return tcp === null ? {} : { backend: tcp[1], member: tcp[2], ended: tcp[3] };
}

function fieldsOfJson(line: string): Fields {
  try {
    const { backend, member, ended, status } = JSON.parse(line) as Record<string, unknown>;
    if (typeof backend !== 'string' || typeof member !== 'string' || typeof ended !== 'string') return {};
    return { backend, member, ended, status: typeof status === 'number' ? status : undefined };
  } catch {
    return {};
  }
}

/**
 * What went wrong at the member, in words; '' if nothing that counts: a client that left, a queue, an idle connection. In mode
 * http the load balancer's own answers have a status, too.
 */
export function errorInWords(
  { ended, status }: RequestError,
  { statuses }: Ejection,
  mode: 'tcp' | 'http',
): string {
  const [by, phase] = ended;
  if (by === 'S' && phase === 'C') return 'it refused the connection';
  if (by === 's' && phase === 'C') return 'it did not accept the connection in time';
  if (by === 'S' && (phase === 'H' || phase === 'D')) return 'it reset the connection';
  if (by === 's' && mode === 'http' && (phase === 'H' || phase === 'D')) return 'it did not answer in time';
  const isOfMember = mode === 'http' && (by === '-' || by === 'C' || by === 'c');
  return isOfMember && isStatusOf(status, statuses) ? `it answered ${status}` : '';
}

/** `statuses`: `500,502-504`. */
function isStatusOf(status: number, statuses: string): boolean {
  return statuses.split(',').some((part) => {
    const [from = '', to = from] = part.split('-');
    return status >= Number(from) && status <= Number(to);
  });
}
