// Explains one route, ListenerSet, policy, Ingress or GatewayClass for the command `why`: what each of its parents says, and
// its rules with their pools. Reads the parts of the agent; changes nothing.

import { nearest } from '../../base/nearest.ts';
import { quote } from '../../base/quote.ts';
import { GATEWAY_GROUP } from '../../kubernetes/gateway/names.ts';
import { isStatusKind } from '../../kubernetes/status-kinds.ts';
import type { Problem } from '../../model/load-balancer.ts';
import { objectOf } from '../../model/names.ts';
import type { ObjectStatus, ParentReference, RouteKind, StatusCondition } from '../../model/object-status.ts';
import type { StatusName } from '../../model/object-statuses.ts';
import { classProblems } from '../operating/class-problems.ts';
import { problemsOf } from '../operating/load-balancer-view.ts';
import { type PoolExplanation, poolsOf } from './explain-pools.ts';
import { actionInWords, locationInWords, matchInWords, routeEntries } from './route-words.ts';
import type { StatusSources } from './status.ts';

export interface ObjectExplanation {
  /** `HTTPRoute default/api`. */
  readonly object: StatusName;
  readonly verdict: 'not found' | 'not ours' | 'served' | 'served in part' | 'not served';
  /** Sentences on what is wrong. */
  readonly reasons: readonly string[];
  /** The conditions for each parent, or of the object itself ('' as its name). */
  readonly parents: readonly { readonly name: string; readonly conditions: readonly StatusCondition[] }[];
  readonly rules: readonly RuleExplanation[];
  readonly problems: readonly Problem[];
}

export interface RuleExplanation {
  /** `HTTPRoute default/api#0`. */
  readonly name: string;
  /** Load balancers, listeners and hosts that have it, in words. */
  readonly places: readonly string[];
  readonly matches: readonly string[];
  /** What it does, in words. */
  readonly action: string;
  readonly pools: readonly PoolExplanation[];
}

export function explainObject(object: StatusName, sources: StatusSources): ObjectExplanation {
  const { desired, cluster } = sources;
  const [kind = '', key = ''] = object.split(' ', 2);
  const parts = desired.statuses.partsOf(object);
  const problems = problemsAbout(object, sources);
  const empty = { object, parents: [], rules: [], problems };
  // Its last version that could be read is explained; another one may be refused.
  const refused = messagesOf(sources.sourceProblems().filter((each) => each.object === object));
  if (!isStatusKind(kind) || !cluster.has({ kind, key })) {
    const reasons = [`There is no ${object}, or the agent has not read it`, ...refused];
    return { ...empty, verdict: 'not found', reasons };
  }
  if (parts.length === 0) {
    const reason = 'No Gateway, or class, of this agent is its parent';
    const misspelt = kind.endsWith('Route') ? missingParents(kind as RouteKind, key, cluster) : [];
    return {
      ...empty,
      verdict: 'not ours',
      reasons: [...refused, reason, ...misspelt, ...messagesOf(problems)],
    };
  }
  const parents = parts.flatMap(parentsOf);
  const faults = parents.flatMap(({ name, conditions }) =>
    conditions.filter(({ status }) => status === 'False').map((condition) => faultInWords(name, condition)),
  );
  const rules = rulesOf(object, sources);
  const withoutMembers = rules.flatMap(({ pools }) =>
    pools
      .filter(({ name, weight, ready }) => name !== '' && weight > 0 && ready === 0)
      .map(({ name }) => `No member of ${name} takes requests: see "headgate why ${name.split(' ')[0]}"`),
  );
  const reasons = [...refused, ...faults, ...messagesOf(problems), ...new Set(withoutMembers)];
  return {
    object,
    verdict: verdictOf(parents, faults.length + withoutMembers.length),
    reasons,
    parents,
    rules,
    problems: [...problems, ...classProblems(parts)],
  };
}

/** Gateways and ListenerSets that the route names and that do not exist, each with the one that may be meant. */
function missingParents(kind: RouteKind, key: string, cluster: StatusSources['cluster']): readonly string[] {
  const route = cluster.route(kind, key);
  const known: Readonly<Record<string, readonly string[]>> = {
    Gateway: Array.from(cluster.gateways(), (each) => each.key),
    ListenerSet: Array.from(cluster.listenerSets(), (each) => each.key),
  };
  return (route?.parents ?? []).flatMap(({ group, kind: of, namespace, name }) => {
    const wanted = `${namespace || route?.namespace}/${name}`;
    const names = group === GATEWAY_GROUP && Object.hasOwn(known, of) ? known[of] : undefined;
    if (names === undefined || names.includes(wanted)) return [];
    const meant = nearest(wanted, names, MOST_LETTERS);
    return [
      `There is no ${of} ${quote(wanted)}${meant === undefined ? '' : `, the nearest is ${quote(meant)}`}`,
    ];
  });
}

/** The most wrong letters of a misspelt name: a namespace and a name are long words, of which a third would be another one. */
const MOST_LETTERS = 2;

type Parents = ObjectExplanation['parents'];

function parentsOf(part: ObjectStatus): Parents {
  if ('parents' in part)
    return part.parents.map(({ ref, conditions }) => ({ name: refInWords(ref), conditions }));
  if ('ancestors' in part)
    return part.ancestors.map(({ ref, conditions }) => ({ name: refInWords(ref), conditions }));
  if (part.kind === 'Ingress')
    return [{ name: `address ${part.addresses.join(', ') || 'none'}`, conditions: [] }];
  const listeners =
    'listeners' in part
      ? part.listeners.map(({ name, conditions }) => ({ name: `listener "${name}"`, conditions }))
      : [];
  return [{ name: '', conditions: part.conditions }, ...listeners];
}

/** `Gateway default/edge, listener "web", port 80`. */
function refInWords({ kind = 'Gateway', namespace, name, sectionName, port }: ParentReference): string {
  const words = [`${kind} ${namespace === undefined || namespace === '' ? '' : `${namespace}/`}${name}`];
  if (sectionName) words.push(`listener "${sectionName}"`);
  if (port) words.push(`port ${port}`);
  return words.join(', ');
}

function faultInWords(parent: string, { type, reason, message }: StatusCondition): string {
  return `${parent === '' ? '' : `${parent}: `}not ${type} (${reason})${message === '' ? '' : `: ${message}`}`;
}

/** `faults`: how many of its parts are not as asked for. */
function verdictOf(parents: Parents, faults: number): ObjectExplanation['verdict'] {
  if (faults === 0) return 'served';
  const isAccepted = parents.some(({ conditions }) =>
    conditions.some(({ type, status }) => type === 'Accepted' && status === 'True'),
  );
  return isAccepted ? 'served in part' : 'not served';
}

function rulesOf(object: StatusName, sources: StatusSources): readonly RuleExplanation[] {
  const found = new Map<
    string,
    { places: Set<string>; matches: Set<string>; explanation: RuleExplanation }
  >();
  for (const { entry, ...place } of routeEntries(sources.desired)) {
    const { rule, match } = entry;
    if (rule.route !== object) continue;
    // One rule may do different things at different ports: redirect at one, and forward at the other.
    const id = `${rule.name} ${actionInWords(rule)}`;
    const known = found.get(id) ?? {
      places: new Set(),
      matches: new Set(),
      explanation: {
        name: rule.name,
        places: [],
        matches: [],
        action: actionInWords(rule),
        pools: poolsOf(rule, sources),
      },
    };
    known.places.add(locationInWords(place));
    known.matches.add(matchInWords(match));
    found.set(id, known);
  }
  return [...found.values()]
    .map(({ places, matches, explanation }) => ({
      ...explanation,
      places: [...places],
      matches: [...matches],
    }))
    .sort((a, b) => numberOf(a.name) - numberOf(b.name));
}

/** In its route. */
function numberOf(rule: string): number {
  return Number(rule.slice(rule.lastIndexOf('#') + 1));
}

/** The problems that a load balancer has with this object. */
function problemsAbout(object: StatusName, sources: StatusSources): readonly Problem[] {
  const { desired, operating } = sources;
  return [...desired.loadBalancers.values()]
    .filter(({ key, problems }) => objectOf(key) === object || problems.length > 0)
    .flatMap((each) => problemsOf(each, sources, operating.problemsOf(each.key)))
    .filter((problem) => problem.object === object);
}

function messagesOf(problems: readonly Problem[]): readonly string[] {
  return problems.map(({ message }) => message);
}
