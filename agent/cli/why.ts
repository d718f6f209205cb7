// `headgate why NAME`: why the running agent serves a load balancer, a route or a request, serves it in part, or does not.

import { agentSocketPath, askAgent } from '../answer/agent-socket.ts';
import { counted } from '../base/counted.ts';
import { quote } from '../base/quote.ts';
import { keyOf, NO_NAMESPACE, objectOf, ownerOf } from '../model/names.ts';
import type { ListenerExplanation as Listener, ServiceExplanation } from '../report/answers/explain.ts';
import type { ObjectExplanation } from '../report/answers/explain-object.ts';
import type { RequestExplanation } from '../report/answers/explain-request.ts';
import { type Arguments, type Command, JSON_FLAG, NO_AGENT } from './command.ts';
import { isName, namespaceOf, print, usageError } from './command-line.ts';
import { keyOfObject, objectFrom } from './named-object.ts';
import { type Line, type Part, statusPart, tableLines, title, verdictPart } from './text.ts';
import { objectLines, requestLines } from './why-routes.ts';

export const why: Command = {
  name: 'why',
  purpose: 'explain why a load balancer, a route or a request is served or not',
  details: [
    'NAME is NAMESPACE/NAME of a Service, or a name of "headgate list"; a NAME without a namespace is in the one of -n, or in "default".',
    'A route, Ingress, ListenerSet or policy is KIND/NAMESPACE/NAME, a Gateway gateway:NAMESPACE/NAME, an IngressClass ingress:-/NAME.',
    'A URL asks which listener, rule and pool get a GET request for it, and why the rules before do not match.',
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
    ...JSON_FLAG,
  },
  settings: 'place',
  exits: { 0: 'served', 1: 'not served, or not all of it, or there is no such object', 3: NO_AGENT },
  examples: [
    { line: 'headgate why shop/web', doc: 'the Service web in the namespace shop' },
    { line: 'headgate why web', doc: 'the Service default/web' },
    { line: 'headgate why HTTPRoute/shop/api', doc: 'the parents of a route, its rules and their pools' },
    { line: 'headgate why https://example.org/v2', doc: 'who answers this request' },
    { line: 'headgate why shop/web --json | jq -r .verdict', doc: 'one word for a script' },
  ],
  run: async (given) => {
    const path = agentSocketPath(given.settings.runtimeDir);
    const [text = ''] = given.positionals;
    if (/^https?:\/\//i.test(text)) {
      const explanation = (await askAgent(path, 'why-request', { url: text })) as RequestExplanation;
      print(given, explanation, requestLines(explanation));
      return explanation.answers.some(({ rule, isServed }) => rule !== '' && isServed) ? 0 : 1;
    }
    const object = objectFrom(given);
    if (object !== undefined) {
      const explanation = (await askAgent(path, 'why-object', { object })) as ObjectExplanation;
      print(given, explanation, objectLines(explanation));
      return explanation.verdict === 'served' ? 0 : 1;
    }
    const explanation = (await askAgent(path, 'why', { service: keyFrom(given) })) as ServiceExplanation;
    print(given, explanation, linesOf(explanation));
    return explanation.verdict === 'served' ? 0 : 1;
  },
};

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
  const { key, verdict, status, addresses, reasons, listeners } = explanation;
  const health = status === undefined ? [] : [', ', statusPart(status)];
  const lines: Line[] = [[title(objectOf(key)), ': ', verdictPart(verdict), ...health]];
  if (addresses.length > 0) lines.push(`Addresses: ${addresses.join(', ')}`);
  for (const reason of reasons) lines.push(`  - ${reason}`);
  for (const listener of listeners) lines.push(...listenerLines(listener));
  return lines;
}

function listenerLines({
  protocol,
  port,
  addresses,
  status,
  members,
  notReady,
  rules,
}: Listener): readonly Line[] {
  const binds = addresses.length > 0 ? addresses.join(', ') : 'no address';
  const waiting = notReady > 0 ? `, ${counted(notReady, 'endpoint')} not ready` : '';
  const counts =
    rules === undefined ? `, ${counted(members.length, 'member')}${waiting}` : `, ${counted(rules, 'rule')}`;
  return [
    [`${protocol} port ${port} on ${binds}: `, statusPart(status), counts],
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
  const drift = haproxy === state ? '' : `, the dataplane has it as ${haproxy}`;
  return [`    ${name}${target && ` (${target})`}:`, state, statusPart(status), `${cause}${drift}`];
}
