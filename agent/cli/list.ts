// `headgate list`: the load balancers of the running agent in a table, the worst first.

import { agentSocketPath, askAgent } from '../answer/agent-socket.ts';
import type { AmphoraList } from '../octavia/report/amphora-report.ts';
import type { ListedLoadBalancer } from '../report/answers/list.ts';
import { amphoraListLines } from './amphora-lines.ts';
import { type Command, JSON_FLAG, NO_AGENT } from './command.ts';
import { namespaceOf, print } from './command-line.ts';
import { type Line, type Part, tableLines, title, verdictPart } from './text.ts';

export const list: Command = {
  name: 'list',
  purpose: 'list the load balancers, the worst first',
  details: [
    'The pools of routes are folded into the Gateways and IngressClasses that send to them; --pools shows them, too.',
    'READY counts the members that take new connections, of all members; a member of two ports counts twice.',
    'AGE is that of the Service, "-" if its manifest does not say when it was created.',
  ],
  flags: {
    namespace: {
      placeholder: 'NAMESPACE',
      short: 'n',
      doc: 'only this namespace',
      completedBy: 'namespaces',
    },
    pools: { placeholder: '', doc: 'the pools of routes, too' },
    ...JSON_FLAG,
  },
  settings: 'place',
  exits: { 0: 'listed', 1: 'the agent cannot answer', 3: NO_AGENT },
  examples: [
    { line: 'headgate list', doc: 'all load balancers with addresses, ports, members and verdict' },
    { line: 'headgate list -n shop', doc: 'those of one namespace, also by their routes' },
    { line: 'headgate list --pools', doc: 'the pools of routes, too' },
    {
      line: `headgate list --json | jq -r '.[] | select(.verdict != "served").key'`,
      doc: 'names for a script',
    },
  ],
  run: async (given) => {
    const namespace = namespaceOf(given);
    const path = agentSocketPath(given.settings.runtimeDir);
    const query: Readonly<Record<string, string>> = {
      ...(namespace !== undefined && { namespace }),
      ...(given.own.pools === true && { pools: 'true' }),
    };
    const answer = (await askAgent(path, 'list', query)) as readonly ListedLoadBalancer[] | AmphoraList;
    if ('amphora' in answer) {
      print(given, answer.listeners, amphoraListLines(answer.listeners));
      return 0;
    }
    const rows = answer;
    const none = `No load balancer${namespace === undefined ? '' : ` in namespace "${namespace}"`}`;
    print(given, rows, rows.length === 0 ? [none] : linesOf(rows, Date.now()));
    return 0;
  },
};

function linesOf(rows: readonly ListedLoadBalancer[], now: number): readonly Line[] {
  const hasPublic = rows.some(({ publicAddresses = [] }) => publicAddresses.length > 0);
  const head = [
    'NAME',
    'ADDRESSES',
    ...(hasPublic ? ['PUBLIC'] : []),
    'PORTS',
    'READY',
    'ENGINE',
    'VERDICT',
    'AGE',
  ];
  return tableLines([head.map(title), ...rows.map((row) => cellsOf(row, now, hasPublic))]);
}

function cellsOf(row: ListedLoadBalancer, now: number, hasPublic: boolean): readonly Part[] {
  const { key, addresses, publicAddresses = [], ports, ready, members, engines, verdict, created } = row;
  return [
    key,
    firstOf(addresses),
    ...(hasPublic ? [firstOf(publicAddresses)] : []),
    // As kubectl writes them.
    firstOf(ports.map((port) => port.split(' ').reverse().join('/'))),
    `${ready}/${members}`,
    engines.join(',') || '-',
    verdictPart(verdict),
    created === '' ? '-' : ageOf(now - Date.parse(created)),
  ];
}

/** The most items in one cell. */
const MAX_SHOWN = 3;

function firstOf(words: readonly string[]): string {
  const more = words.length - MAX_SHOWN;
  return `${words.slice(0, MAX_SHOWN).join(',') || '-'}${more > 0 ? ` +${more}` : ''}`;
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const;

/** As kubectl: the largest unit of which there are two, else seconds. */
export function ageOf(milliseconds: number): string {
  const [letter, length] = UNITS.find(([, unit]) => milliseconds >= 2 * unit) ?? (['s', 1_000] as const);
  return `${Math.max(0, Math.floor(milliseconds / length))}${letter}`;
}
