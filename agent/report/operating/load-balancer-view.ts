// The view of one load balancer: its operating status, its problems, and the verdict, which is what a client would see as far
// as is known. The commands `why` and `list`, the status page, the metrics, the log and the status in the cluster are
// projections of it. Reads only.

import type { Verdict } from '../../../health/page-model.ts';
import { memoByIdentity } from '../../base/memo.ts';
import type { DataplaneFacts } from '../../dataplane/forwarder.ts';
import type { DesiredState } from '../../model/desired-state.ts';
import type { LoadBalancer, OwnerKey, Problem, ProblemReason } from '../../model/load-balancer.ts';
import { ownerOf, poolListener } from '../../model/names.ts';
import type { HostRoutes, RouteRule } from '../../model/routes.ts';
import { type ListenerStatus, type LoadBalancerStatus, operatingStatus } from './operating-status.ts';
import { isReachable, type Reach } from './reachable.ts';

export { takesConnections } from './operating-status.ts';

export interface FactSources {
  readonly dataplane: DataplaneFacts;
  readonly reach: Reach;
}

export interface ViewSources extends FactSources {
  readonly desired: Pick<DesiredState, 'loadBalancers' | 'poolUses'>;
  /** The statuses of pools that routes send to. */
  readonly operating: { of(key: string): LoadBalancerStatus | undefined };
}

export interface LoadBalancerView {
  readonly health: LoadBalancerStatus;
  readonly problems: readonly Problem[];
  readonly verdict: Verdict;
}

export function viewOf(loadBalancer: LoadBalancer, sources: ViewSources): LoadBalancerView {
  const health = operatingStatus(loadBalancer, sources.dataplane, sources.reach);
  const problems = problemsOf(loadBalancer, sources, health.problems);
  return { health, problems, verdict: verdictOf(loadBalancer, health, problems, sources) };
}

/** The only place that decides it; docs/status.md has the table. */
function verdictOf(
  loadBalancer: LoadBalancer,
  { listeners }: LoadBalancerStatus,
  problems: readonly Problem[],
  sources: ViewSources,
): Verdict {
  const ofListeners = listeners.map((status, at) => {
    const listener = loadBalancer.listeners[at];
    if (listener !== undefined && !isReachable(loadBalancer, listener, sources.reach)) return 'not served';
    return listenerVerdict(status, listener?.routing !== undefined, sources.dataplane);
  });
  const own = ofAll(ofListeners);
  if (own === 'not served') return own;
  const ofPools = poolVerdicts(loadBalancer.key, sources).map(({ verdict }) => verdict);
  // If none of its pools is served, their verdict is the one of all.
  const whole = ofPools.length === 0 || ofAll(ofPools) === 'served' ? own : ofAll(ofPools);
  return whole === 'served' && isBrokenInPart(loadBalancer, problems) ? 'served in part' : whole;
}

/** Never `not served` while the Service's condition Programmed is True. */
function listenerVerdict(
  { name, ready, down, failing, fails, taking }: ListenerStatus,
  hasRoutes: boolean,
  dataplane: Pick<DataplaneFacts, 'serves'>,
): Verdict {
  if (!dataplane.serves(name)) return 'not served';
  if (!hasRoutes && ready > 0 && down === ready) return 'members down';
  // What the pools of routes are, they say themselves.
  if (hasRoutes) return fails === 'none' ? 'served' : 'served in part';
  if (ready > 0 && (fails === 'all' || (failing > 0 && taking === 0))) return 'members fail';
  if (taking === 0) return 'no ready member';
  return fails === 'some' ? 'served in part' : 'served';
}

export interface PoolVerdict {
  readonly pool: OwnerKey;
  /** The port of its Service. */
  readonly port: number;
  readonly verdict: Verdict;
}

/** The verdicts of the pools that the owner's routes send to. */
export function poolVerdicts(
  key: OwnerKey,
  { desired, operating, dataplane }: Pick<ViewSources, 'desired' | 'operating' | 'dataplane'>,
): readonly PoolVerdict[] {
  return desired.poolUses.usesOf(key).map(({ pool, port }) => {
    const name = poolListener(pool, port);
    const status = operating.of(pool)?.listeners.find((each) => each.name === name);
    const verdict = status === undefined ? 'no ready member' : listenerVerdict(status, false, dataplane);
    return { pool, port, verdict };
  });
}

const UNSERVED: readonly Verdict[] = ['not served', 'members fail', 'members down', 'no ready member'];

/** The verdict that all have; if they differ `served in part`, or the worst if none is served. */
function ofAll(verdicts: readonly Verdict[]): Verdict {
  const [first = 'not served'] = verdicts;
  if (verdicts.every((each) => each === first)) return first;
  if (verdicts.includes('served') || verdicts.includes('served in part')) return 'served in part';
  return UNSERVED.find((each) => verdicts.includes(each)) ?? first;
}

/** What leaves out a part of what clients ask for, whoever's load balancer it is. */
const PARTS: readonly ProblemReason[] = ['CertificateExpired', 'ShareExceeded'];
/** The same of one with routes; a Service's listeners are not served, or go on with what they had. */
const PARTS_OF_ROUTED: readonly ProblemReason[] = [
  ...PARTS,
  'InvalidListener',
  'InvalidRoute',
  'InvalidPolicy',
  'CertificateMissing',
  'InvalidCertificate',
  'InvalidUsers',
];

/** Its listeners are served, but one of them, a certificate or a route does not work. */
function isBrokenInPart({ key, listeners }: LoadBalancer, problems: readonly Problem[]): boolean {
  const reasons = ownerOf(key).kind === 'Service' ? PARTS : PARTS_OF_ROUTED;
  if (problems.some(({ reason }) => reasons.includes(reason))) return true;
  return listeners.some(
    ({ routing }) =>
      routing?.kind === 'http' && routing.sections.some(({ hosts }) => hosts.some(hasBrokenRule)),
  );
}

const hasBrokenRule = memoByIdentity(({ entries }: HostRoutes) => entries.some(({ rule }) => isBroken(rule)));

/** It answers with an error by itself, always or for the share of a backend that does not exist. */
function isBroken({ action }: RouteRule): boolean {
  if (action.kind === 'answer') return action.status !== 404;
  return (
    action.kind === 'forward' && action.backends.some(({ pool, weight }) => pool === undefined && weight > 0)
  );
}

/** All problems; `ofHealth`: those of the operating status. */
export function problemsOf(
  loadBalancer: LoadBalancer,
  sources: FactSources,
  ofHealth: readonly Problem[],
): readonly Problem[] {
  return [...loadBalancer.problems, ...foundProblems(loadBalancer, sources, ofHealth)];
}

/** The problems that this host has found, without those of the objects themselves. */
export function foundProblems(
  loadBalancer: LoadBalancer,
  { dataplane, reach }: FactSources,
  ofHealth: readonly Problem[],
): readonly Problem[] {
  return [...dataplane.problemsOf(loadBalancer), ...(reach?.problemsOf(loadBalancer) ?? []), ...ofHealth];
}
