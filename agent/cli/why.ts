// `headgate why NAME`: why the running agent serves a load balancer, a route or a request, serves it in part, or does not.

import { agentSocketPath, askAgent } from '../answer/agent-socket.ts';
import { counted } from '../base/counted.ts';
import { quote } from '../base/quote.ts';
import { keyOf, NO_NAMESPACE, objectInWords, objectOf, ownerOf } from '../model/names.ts';
import type { AmphoraWhy } from '../octavia/report/amphora-report.ts';
import type { ListenerExplanation as Listener, ServiceExplanation } from '../report/answers/explain.ts';
import type { HostAnnouncement, LocationExplanation, MemberOf } from '../report/answers/explain-location.ts';
import type { ObjectExplanation } from '../report/answers/explain-object.ts';
import type { RequestExplanation } from '../report/answers/explain-request.ts';
import { takesConnections } from '../report/operating/operating-status.ts';
import { amphoraWhyLines } from './amphora-lines.ts';
import { type Arguments, type Command, JSON_FLAG, NO_AGENT } from './command.ts';
import { isName, namespaceOf, print, usageError } from './command-line.ts';
import { CLIENT_FLAGS, clientFields } from './given-client.ts';
import { locationFrom } from './named-location.ts';
import { keyOfObject, objectFrom } from './named-object.ts';
import { bad, type Line, type Part, statusPart, tableLines, title, verdictPart } from './text.ts';
import { objectLines, requestLines } from './why-routes.ts';

export const why: Command = {
  name: 'why',
  purpose: 'explain why a load balancer, a route or a request is served or not',
  details: [
    'NAME is NAMESPACE/NAME of a Service, or a name of "headgate list"; a NAME without a namespace is in the one of -n, or in "default".',
    'A route, Ingress, ListenerSet or policy is KIND/NAMESPACE/NAME, a Gateway gateway:NAMESPACE/NAME, an IngressClass ingress:-/NAME.',
    'An address, ADDRESS:PORT, Pod/NAMESPACE/NAME or Node/NAME asks which load balancers have the address, and of which ports it is a member.',
    'A URL asks which listener, rule and pool get a request for it, why the rules before do not match, and to whom it is open: each check on the way, in the order in which HAProxy makes them.',
    'With --from, --header, --method, --cert, --user and --certificate it is about one client. What is not given is "asked", not "passed"; no password, token or cookie is shown, and a private key is not read.',
    'The answer names ports without members, EndpointSlices with other ports, refused values, and files that cannot be read.',
  ],
  arguments: [{ name: 'NAME', completedBy: 'load balancers' }],
  flags: {
    namespace: {
      placeholder: 'NAMESPACE',
      short: 'n',
      doc: 'the namespace of a NAME without one',
      completedBy: 'namespaces',
    },
    ...CLIENT_FLAGS,
    ...JSON_FLAG,
  },
  settings: 'place',
  exits: {
    0: 'served, and a URL is open to the client, or to some if none is given',
    1: 'not served, or not all of it, or there is no such object; or closed to the client',
    3: NO_AGENT,
    4: 'open to the client only with what was not given: a certificate, a password, a token, another address behind a proxy',
  },
  examples: [
    { line: 'headgate why shop/web', doc: 'the Service web in the namespace shop' },
    { line: 'headgate why web', doc: 'the Service default/web' },
    { line: 'headgate why HTTPRoute/shop/api', doc: 'the parents of a route, its rules and their pools' },
    { line: 'headgate why 192.0.2.10:443', doc: 'who serves this address and port' },
    {
      line: 'headgate why Pod/shop/web-1',
      doc: 'the ports that the pod is a member of, and whether it answers',
    },
    { line: 'headgate why https://example.org/v2', doc: 'who answers this request' },
    {
      line: 'headgate why https://example.org/admin --from 198.51.100.7',
      doc: 'whether this client gets in, and what each check says',
    },
    {
      line: 'headgate why https://example.org/ --header @token.txt --header "x-canary: always"',
      doc: 'whether the token in this file lets in, what it lacks, and which backend the other header gets',
    },
    {
      line: 'headgate why https://example.org/ --cert client.pem',
      doc: 'whether this certificate lets in, and what members get of it',
    },
    { line: 'headgate why shop/web --json | jq -r .verdict', doc: 'one word for a script' },
  ],
  run: async (given) => {
    const path = agentSocketPath(given.settings.runtimeDir);
    const [text = ''] = given.positionals;
    if (/^https?:\/\//i.test(text)) {
      const client = clientFields(given);
      const explanation = (await askAgent(path, 'why-request', {
        url: text,
        ...client,
      })) as RequestExplanation;
      print(given, explanation, requestLines(explanation));
      return exitOf(explanation, Object.keys(client).length > 0);
    }
    if (Object.keys(clientFields(given)).length > 0)
      throw usageError(
        `${FLAGS.map((name) => `--${name}`).join(', ')} are about the client of a URL, such as https://example.org/`,
      );
    const place = locationFrom(given);
    if (place !== undefined) {
      const explanation = (await askAgent(path, 'why-place', place)) as LocationExplanation;
      print(given, explanation, placeLines(text, explanation));
      return isWell(explanation) ? 0 : 1;
    }
    const object = objectFrom(given);
    if (object !== undefined) {
      const explanation = (await askAgent(path, 'why-object', { object })) as ObjectExplanation;
      print(given, explanation, objectLines(explanation));
      return explanation.verdict === 'served' ? 0 : 1;
    }
    const answer = (await askAgent(path, 'why', { service: keyFrom(given) })) as
      | ServiceExplanation
      | AmphoraWhy;
    if ('listener' in answer) {
      print(given, answer, amphoraWhyLines(answer.listener, answer.loadBalancer));
      return answer.listener.status === '' ? 1 : 0;
    }
    const explanation = answer;
    print(given, explanation, linesOf(explanation));
    return explanation.verdict === 'served' ? 0 : 1;
  },
};

function exitOf({ answers }: RequestExplanation, isOneClient: boolean): number {
  const verdicts = answers.filter(({ isServed }) => isServed).map(({ access }) => access.verdict);
  if (verdicts.some((each) => ['open', 'redirected', 'answered'].includes(each))) return 0;
  if (!verdicts.includes('asks')) return 1;
  return isOneClient ? ASKED : 0;
}

const ASKED = 4;
const FLAGS = Object.keys(CLIENT_FLAGS);

/** The key of the owner that is meant: `web` is `default/web`. Errors: USAGE. */
function keyFrom(given: Arguments): string {
  const [text = ''] = given.positionals;
  const named = keyOfObject(given);
  if (named !== undefined) return named;
  const asked = namespaceOf(given);
  const { kind, ...owner } = ownerOf(text.includes('/') ? text : `${text}/`);
  const [namespace, name] =
    owner.name === '' ? [asked ?? 'default', owner.namespace] : [owner.namespace, owner.name];
  const isPlace = namespace === NO_NAMESPACE || isName(namespace);
  if (text.split('/').length > 2 || !isPlace || !isName(name))
    throw usageError(
      `Cannot look up ${quote(text)}: the form is NAMESPACE/NAME, or NAME in the namespace "default"`,
    );
  if (asked !== undefined && asked !== namespace)
    throw usageError(`Cannot look up ${quote(text)} in the namespace ${quote(asked)}: name one namespace`);
  return keyOf({ kind, namespace, name });
}

function linesOf(explanation: ServiceExplanation): readonly Line[] {
  const { key, verdict, status, addresses, announced = [], reasons, listeners } = explanation;
  const health = status === undefined ? [] : [', ', statusPart(status)];
  const lines: Line[] = [[title(objectOf(key)), ': ', verdictPart(verdict), ...health]];
  if (addresses.length > 0) lines.push(`Addresses: ${addresses.join(', ')}`);
  for (const each of announced) lines.push(`  ${each}`);
  for (const reason of reasons) lines.push(`  - ${reason}`);
  for (const listener of listeners) lines.push(...listenerLines(listener));
  return lines;
}

/** The lines about an address, a pod or a node. */
function placeLines(
  asked: string,
  { loadBalancers, members, more, hosts = [], egress = [] }: LocationExplanation,
): readonly Line[] {
  if (loadBalancers.length === 0 && members.length === 0 && egress.length === 0)
    return [[title(asked), ': ', bad('no load balancer has it as an address or a member')]];
  const lines = loadBalancers.flatMap(linesOf);
  if (hosts.length > 0) lines.push(`${counted(hosts.length, 'host')} of the setting "hosts":`);
  lines.push(...hosts.map(hostLine));
  if (members.length > 0) lines.push([title(asked), ` is a member of ${counted(members.length, 'port')}:`]);
  lines.push(...tableLines(members.map(placeCells)));
  for (const { pod, target, vip, owner } of egress)
    lines.push(
      `Connections of ${pod}${target && ` (${target})`} leave from ${vip}, by ${objectInWords(owner)}`,
    );
  if (more > 0) lines.push(`  ... and ${more} more`);
  return lines;
}

function hostLine({ name, announcement }: HostAnnouncement): Line {
  if (announcement === undefined) return [`    ${name}: `, bad('does not answer')];
  const { worn, count: routers, of, routers: names, why: reason } = announcement;
  if (worn === 'none') return [`    ${name}: `, bad('not announced'), `: ${reason}`];
  const last = worn === 'last' ? `, as the last choice: ${reason}` : '';
  return [`    ${name}: announced to ${routers} of ${counted(of, 'router')} (${names})${last}`];
}

function placeCells({ key, port, name, target, state, status, cause }: MemberOf): readonly Part[] {
  return [`    ${key} ${port}:`, `${name}${target && ` (${target})`}`, state, statusPart(status), cause];
}

/** Something has it, and all of that is served. */
function isWell({ loadBalancers, members, egress = [] }: LocationExplanation): boolean {
  const isServed = loadBalancers.every(({ verdict }) => verdict === 'served');
  return (
    loadBalancers.length + members.length + egress.length > 0 && isServed && members.every(takesConnections)
  );
}

function listenerLines({
  protocol,
  port,
  addresses,
  status,
  members,
  notReady,
  rules,
  routes,
  moreRoutes,
}: Listener): readonly Line[] {
  const binds = addresses.length > 0 ? addresses.join(', ') : 'no address';
  const waiting = notReady > 0 ? `, ${counted(notReady, 'endpoint')} not ready` : '';
  const counts =
    rules === undefined ? `, ${counted(members.length, 'member')}${waiting}` : `, ${counted(rules, 'rule')}`;
  return [
    [`${protocol} port ${port} on ${binds}: `, statusPart(status), counts],
    ...routes.map((route) => `    ${route}`),
    ...(moreRoutes > 0 ? [`    ... and ${moreRoutes} more`] : []),
    ...tableLines(members.map(memberCells)),
  ];
}

function memberCells({
  name,
  target,
  state,
  haproxy,
  status,
  cause,
}: Listener['members'][number]): readonly Part[] {
  const drift = haproxy === state ? '' : `the dataplane has it as ${haproxy}`;
  const more = [cause, drift].filter(Boolean).join(', ');
  return [`    ${name}${target && ` (${target})`}:`, state, statusPart(status), more];
}
