// The answer of `headgate plan`: what differs between two states, what opens first, and how it is printed for people, as Markdown
// for a merge request, or as JSON.

import { counted } from '../../base/counted.ts';
import type { Problem } from '../../model/load-balancer.ts';
import { objectOf } from '../../model/names.ts';
import { exampleRequests } from '../../report/difference/example-requests.ts';
import {
  type ObjectChange,
  type ObjectChanges,
  objectChanges,
} from '../../report/difference/object-changes.ts';
import { type PortAccessChange, portAccessChanges } from '../../report/difference/port-access.ts';
import { RequestDifferences, type RequestGroup } from '../../report/difference/request-differences.ts';
import { Treatments } from '../../report/difference/treatments.ts';
import { uncompared } from '../../report/difference/uncompared.ts';
import type { Settings } from '../../settings/settings.ts';
import { problemLine } from '../command-line.ts';
import { bad, good, type Line, title } from '../text.ts';
import type { ComparedStates } from './compared-states.ts';
import { type LoadBalancerChange, loadBalancerChanges } from './effort.ts';

export interface PlanAnswer extends ObjectChanges {
  readonly ports: readonly ObjectChange[];
  readonly loadBalancers: readonly LoadBalancerChange[];
  /** To whom a port of an address is open. */
  readonly access: readonly PortAccessChange[];
  /** Requests that the rules themselves give. */
  readonly requests: readonly RequestGroup[];
  /** Rules for which no example is known: they are compared by the log only. */
  readonly rulesWithoutExample: readonly string[];
  /** undefined without a log. */
  readonly log: LogAnswer | undefined;
  /** What is refused afterwards, and was not before. */
  readonly problems: readonly Problem[];
  /** How many are there before and after: what they keep out is not compared. */
  readonly problemsOfBoth: number;
  /** Changed, and out of reach by these objects: `Service shop/mail has no address`. */
  readonly uncompared: readonly string[];
  /** `IngressClass edge has no address; it is compared as if it had 198.18.0.1`. */
  readonly standIns: readonly string[];
}

export interface LogAnswer {
  readonly requests: number;
  readonly groups: readonly RequestGroup[];
  /** Lines without a request, and the first of them. */
  readonly unread: number;
  readonly firstUnread: string;
}

/** Asks the requests of a log, if there is one. */
export type LogReader = (differences: RequestDifferences) => Promise<Omit<LogAnswer, 'groups' | 'requests'>>;

export async function planAnswer(
  { before, after, standIns }: ComparedStates,
  settings: Settings,
  readLog: LogReader | undefined,
): Promise<PlanAnswer> {
  const treatments = [before, after].map(({ desired }) => new Treatments(desired, settings));
  const [old, now] = treatments;
  if (old === undefined || now === undefined) throw new Error('A plan has two states');
  const ofRules = new RequestDifferences(old, now);
  const { requests, without } = exampleRequests([before.desired, after.desired]);
  for (const { request, place, words } of requests) ofRules.ask(request, place, () => words);
  const ofLog = new RequestDifferences(old, now);
  const read = await readLog?.(ofLog);
  const known = new Set(before.problems.map(problemLine));
  return {
    access: portAccessChanges(before.desired, after.desired),
    requests: ofRules.groups(),
    loadBalancers: loadBalancerChanges(before.desired, after.desired, settings.landing),
    ...objectChanges(before.desired, after.desired),
    rulesWithoutExample: without,
    log: read && { ...read, requests: ofLog.asked, groups: ofLog.groups() },
    problems: after.problems.filter((problem) => !known.has(problemLine(problem))),
    problemsOfBoth: after.problems.filter((problem) => known.has(problemLine(problem))).length,
    uncompared: uncompared(before.desired, after.desired),
    standIns: [...standIns].map(
      ([key, address]) => `${objectOf(key)} has no address; it is compared as if it had ${address}`,
    ),
  };
}

/** Something differs. */
export function hasChanges(answer: PlanAnswer): boolean {
  return answer.uncompared.length > 0 || sectionsOf(answer).some(({ items }) => items.length > 0);
}

interface Section {
  readonly title: string;
  readonly isBad?: true;
  readonly items: readonly Item[];
}

/** Its text, and what stands below it. */
interface Item {
  readonly text: string;
  readonly below: readonly string[];
}

function sectionsOf(answer: PlanAnswer): readonly Section[] {
  const { access, requests, loadBalancers, addresses, ports, certificates, routes, drains, log } = answer;
  const others = requests.filter(({ kind }) => kind !== 'opens' && kind !== 'closes');
  const opening = (kind: 'opens' | 'closes'): readonly Item[] => [
    ...access.filter((each) => each.kind === kind).map(accessItem),
    ...requests.filter((each) => each.kind === kind).map((each) => groupItem(each, '')),
  ];
  return [
    { title: 'Opens', isBad: true, items: opening('opens') },
    { title: 'Closes', items: opening('closes') },
    { title: 'Load balancers', items: loadBalancers.map(changeItem) },
    { title: 'Addresses', items: addresses.map(changeItem) },
    { title: 'Ports', items: ports.map(changeItem) },
    { title: 'Certificates', items: certificates.map(changeItem) },
    { title: 'Routes', items: routes.map(changeItem) },
    { title: 'Members whose connections drain', items: drains.map(changeItem) },
    { title: 'Requests, by the rules', items: others.map((each) => groupItem(each, KINDS[each.kind])) },
    { title: 'Requests of the log', items: (log?.groups ?? []).map(loggedItem) },
  ];
}

const KINDS = {
  opens: 'opens',
  closes: 'closes',
  answer: 'another answer',
  backend: 'another backend',
  handling: 'treated otherwise',
} as const;

function accessItem({ port, ownerBefore, ownerAfter, before, after }: PortAccessChange): Item {
  const owners = [...new Set([ownerBefore, ownerAfter].filter(Boolean))].join(', then ');
  return { text: `${port} (${owners}): ${before} → ${after}`, below: [] };
}

function groupItem({ ruleBefore, ruleAfter, before, after, examples }: RequestGroup, kind: string): Item {
  const what = kind === '' ? '' : `${kind}, `;
  const rules =
    ruleBefore === ruleAfter ? ruleAfter : `${ruleBefore || 'nothing'} → ${ruleAfter || 'nothing'}`;
  return { text: `${what}${rules}: ${before} → ${after}`, below: examples };
}

function loggedItem(group: RequestGroup): Item {
  const { text, below } = groupItem(group, KINDS[group.kind]);
  return { text: `${group.count.toLocaleString('en')} × ${text}`, below };
}

function changeItem({ change, subject, detail }: ObjectChange): Item {
  return { text: `${change} ${subject}${detail === '' ? '' : `: ${detail}`}`, below: [] };
}

/** `2 open, 1 closes; 3 load balancers: 1 reload; 12 of 1,000 requests differ; no problem`. */
function summaryOf(answer: PlanAnswer, sections: readonly Section[]): string {
  const [opens, closes] = sections.map(({ items }) => items.length);
  const { loadBalancers, log, problems, uncompared: others } = answer;
  const by = (effort: LoadBalancerChange['effort']): number =>
    loadBalancers.filter((each) => each.effort === effort).length;
  const efforts = [
    by('commands') > 0 ? `${by('commands')} by commands` : '',
    by('landing') > 0 ? `${by('landing')} by the landing` : '',
    by('reload') > 0 ? `${by('reload')} by a reload` : '',
  ].filter(Boolean);
  const words = efforts.length === 0 ? '' : ` (${efforts.join(', ')})`;
  const differing = log?.groups.reduce((sum, { count }) => sum + count, 0) ?? 0;
  return [
    `${opens} ${opens === 1 ? 'opens' : 'open'}, ${closes} ${closes === 1 ? 'closes' : 'close'}`,
    `${counted(loadBalancers.length, 'load balancer')}${words}`,
    ...(others.length === 0 ? [] : [`${others.length} not compared`]),
    ...(log === undefined
      ? []
      : [`${differing.toLocaleString('en')} of ${log.requests.toLocaleString('en')} logged requests differ`]),
    counted(problems.length, 'problem'),
  ].join('; ');
}

function notesOf(answer: PlanAnswer): readonly string[] {
  const { rulesWithoutExample: rules, log, problemsOfBoth } = answer;
  const [first] = rules;
  const notes = [...answer.uncompared.map((each) => `Not compared: ${each}`), ...answer.standIns];
  if (first !== undefined)
    notes.push(
      `${counted(rules.length, 'rule')} by regular expressions, such as ${first}, ${rules.length === 1 ? 'has' : 'have'} no example: only a log compares ${rules.length === 1 ? 'it' : 'them'}`,
    );
  if (log !== undefined && log.unread > 0)
    notes.push(`${counted(log.unread, 'line')} of the log without a request, such as ${log.firstUnread}`);
  if (problemsOfBoth > 0)
    notes.push(
      `${counted(problemsOfBoth, 'problem')} of both, as "headgate check" shows: what is refused there is not compared`,
    );
  return notes;
}

/** Without changes one line. */
export function planLines(answer: PlanAnswer): readonly Line[] {
  const sections = sectionsOf(answer);
  const lines: Line[] = [[title(summaryOf(answer, sections))]];
  for (const { title: name, isBad, items } of sections) {
    if (items.length === 0) continue;
    lines.push([isBad ? bad(name) : name === 'Closes' ? good(name) : title(name)]);
    for (const { text, below } of items) lines.push(`  ${text}`, ...below.map((each) => `      ${each}`));
  }
  if (answer.problems.length > 0) lines.push([bad('Problems')]);
  lines.push(...answer.problems.map((problem) => `  ${problemLine(problem)}`));
  return [...lines, ...notesOf(answer)];
}

export function planMarkdown(answer: PlanAnswer): readonly string[] {
  const sections = sectionsOf(answer);
  const lines = [`**${escaped(summaryOf(answer, sections))}**`];
  const add = (name: string, items: readonly Item[]): void => {
    if (items.length === 0) return;
    lines.push('', `### ${name}`, '');
    for (const { text, below } of items)
      lines.push(`- ${escaped(text)}`, ...below.map((each) => `  - ${code(each)}`));
  };
  for (const { title: name, items } of sections) add(name, items);
  add(
    'Problems',
    answer.problems.map((problem) => ({ text: problemLine(problem), below: [] })),
  );
  add(
    'Notes',
    notesOf(answer).map((text) => ({ text, below: [] })),
  );
  return lines;
}

/** A value of an object or a log makes no Markdown of its own, and names nobody who would be notified. */
function escaped(text: string): string {
  return text.replace(/[\\`*_[\]<>#|!~&]/g, '\\$&').replaceAll('@', '`@`');
}

/** What a client has sent: as code, in which a merge request finds no names, links or commands. */
function code(text: string): string {
  const longest = Math.max(0, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  return longest === 0 ? `${fence}${text}${fence}` : `${fence} ${text} ${fence}`;
}
