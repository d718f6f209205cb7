// What `plan` and `why` say of a request to a random edge, in the words of what a client gets.

import { writeFile } from 'node:fs/promises';
import { agentSocketPath, askAgent } from '../../../agent/answer/agent-socket.ts';
import { foldersCompared } from '../../../agent/cli/plan/compared-states.ts';
import { type LoadBalancerChange, loadBalancerChanges } from '../../../agent/cli/plan/effort.ts';
import type { Access } from '../../../agent/report/answers/access/access.ts';
import type { RequestExplanation } from '../../../agent/report/answers/explain-request.ts';
import {
  RequestDifferences,
  type RequestGroup,
} from '../../../agent/report/difference/request-differences.ts';
import { loggedRequest } from '../../../agent/report/difference/request-log.ts';
import { Treatments } from '../../../agent/report/difference/treatments.ts';
import { readSettings } from '../../../agent/settings/settings.ts';
import type { TestHost } from '../host/agent.ts';
import type { EdgeClient, EdgeRequest } from './edge-clients.ts';

type Json = Readonly<Record<string, unknown>>;

export interface Said {
  /** `status 200`, `the handshake is refused`. */
  readonly words: string;
  /** Services, of which one gets it. */
  readonly members: readonly string[];
  /** How the header Location begins. */
  readonly location: string;
  readonly rule: string;
}

/** What the authorization server of the edge answers: `/check` wants a header or a cookie, `/none` lets no request in. */
export function answerOfAuthorizer(path: string, headers: Json): number {
  if (path.startsWith('/any')) return 200;
  if (path.startsWith('/none')) return 403;
  return headers['x-pass'] === 'yes' || String(headers.cookie ?? '').includes('pass=yes') ? 200 : 401;
}

/** undefined if `why` says that only HAProxy can tell which rule takes the request. */
export async function whyOf(
  host: TestHost,
  request: EdgeRequest,
  client: EdgeClient,
): Promise<Said | undefined> {
  const { isTls, vip, method, target, from } = request;
  const pem = client.certificate?.cert.replace(/-----[^-]+-----/g, '');
  const headers = Object.entries(client.headers).map(([name, value]) => `${name}: ${value}`);
  const { answers, reason } = (await askAgent(agentSocketPath(host.runtimeDir), 'why-request', {
    url: `${isTls ? 'https' : 'http'}://${request.host}${target}`,
    ...{ from, method, header: ['accept: */*', ...headers].join('\n') },
    ...(pem !== undefined && isTls && { cert: Buffer.from(pem, 'base64').toString('base64url') }),
  })) as RequestExplanation;
  const answer = answers.find(({ addresses }) => addresses.includes(vip));
  if (answer === undefined)
    return { words: 'the connection is closed', members: [], location: '', rule: reason };
  // Members have no TLS of their own.
  const isPassedOn = answer.rule === 'TLSRoute' && isTls;
  const words = isPassedOn ? 'the handshake is refused' : answerTo(answer.access, client);
  if (words === undefined) return undefined;
  const [, plain = words, location = ''] = /^(status \d+)(?: to (\S+))?/.exec(words) ?? [];
  const used = answer.pools.filter(({ weight }) => weight > 0);
  return {
    words: plain,
    members: plain === 'status 200' ? used.map(({ name }) => /\/(\w+)/.exec(name)?.[1] ?? '') : [],
    location: location.split('$')[0] ?? '',
    rule: `${answer.rule} ${answer.action}`,
  };
}

function answerTo({ checks }: Access, client: EdgeClient): string | undefined {
  for (const { name, result, answer, question = [], detail } of checks) {
    if (['refused', 'redirected', 'answered'].includes(result)) return answer;
    if (result !== 'asked') continue;
    if (name === 'route') return undefined;
    if (name !== 'authorization') return answer;
    if (detail.includes('Service default/none')) return 'status 503';
    const sent = question.find((each) => each.startsWith("with the request's own")) ?? '';
    const words = sent.split(/[ ,]+/);
    const given = Object.entries(client.headers).filter(([header]) => words.includes(header));
    const [, path = ''] = question[0]?.split(' ') ?? [];
    const status = answerOfAuthorizer(path, Object.fromEntries(given));
    if (status === 200) continue;
    return status === 401 && answer.startsWith('status 302') ? answer.split(',')[0] : `status ${status}`;
  }
  return 'status 200';
}

export interface SaidOfChange {
  /** undefined: the plan says nothing of the request. */
  readonly group: (request: EdgeRequest) => RequestGroup | undefined;
  readonly efforts: readonly LoadBalancerChange[];
}

export async function planOf(
  host: TestHost,
  before: readonly Json[],
  after: readonly Json[],
): Promise<SaidOfChange> {
  const settings = readSettings({ argv: ['--state-dir', host.stateDir], env: {}, readFile: () => '' });
  const files = ['before', 'after'].map((name) => `${host.directory}/${name}.json`) as [string, string];
  const textOf = (objects: readonly Json[]): string =>
    objects.map((each) => JSON.stringify(each)).join('\n---\n');
  await writeFile(files[0], textOf(before));
  await writeFile(files[1], textOf(after));
  const states = await foldersCompared([files[0]], [files[1]], settings);
  const [old, now] = [states.before.desired, states.after.desired];
  const treatments = [new Treatments(old, settings), new Treatments(now, settings)] as const;
  const group = ({ isTls, vip, host: name, method, target, from }: EdgeRequest): RequestGroup | undefined => {
    const line = JSON.stringify({
      ...{ method, request_uri: target, host: name, remote_addr: from },
      ...{ scheme: isTls ? 'https' : 'http', port: isTls ? 443 : 80 },
    });
    const found = loggedRequest(line, '');
    if (found === undefined) throw new Error(`No request: ${line}`);
    const differences = new RequestDifferences(...treatments);
    differences.ask(found.request, { ...found.place, vip }, () => '', found.client);
    return differences.groups()[0];
  };
  return { group, efforts: loadBalancerChanges(old, now, false) };
}
