// Renders haproxy.cfg: the global section, and the listeners of each load balancer, cached by its identity. Pure, except
// that it reads the templates at the start.

import { hash } from 'node:crypto';
import { loadTemplate } from '../../base/template.ts';
import type { LoadBalancer } from '../../model/load-balancer.ts';
import { ROUTE_CHECKS, STATUS_CLASSES } from '../routes/refusals.ts';
import { AUTH_LUA, ERRORS_LUA, GROUPS_LUA, JWT_LUA, LUA } from '../routes/route-files.ts';
import { hasSection, structureOf, USUAL_WEIGHT } from './listener-config.ts';
import { listenerTemplates, listenerText } from './listener-text.ts';
import { keepsSocket } from './listener-view.ts';
import { globalValues, type RenderContext } from './render-context.ts';
import { routeTemplates } from './routes-text.ts';
import { spareListeners, spareProfile } from './spare-pools.ts';

const globalSection = loadTemplate('haproxy/global');
const programs = [LUA, GROUPS_LUA, AUTH_LUA, ERRORS_LUA, JWT_LUA];
const templatesHash = hash(
  'sha256',
  [globalSection.text, listenerTemplates, routeTemplates, ...programs].join('\n'),
);

/** The part before the first load balancer. `structure`: see structureHash(); `show info` of a worker reports it. */
export function renderGlobal(context: RenderContext, structure: string): string {
  const {
    aclId: _,
    sharedTables,
    certificates: __,
    boot: ___,
    users: ____,
    formerlyDispatched: _____,
    ...values
  } = context;
  return globalSection({
    ...values,
    addsHeaders: values.asksServers || values.verifiesTokens,
    description: descriptionOf(structure),
    usualWeight: USUAL_WEIGHT,
    routeCounters: STATUS_CLASSES + ROUTE_CHECKS.length,
    sharedTables:
      sharedTables === undefined
        ? []
        : [{ ...sharedTables, peers: sharedTables.peers.map((each) => ({ ...each })) }],
  });
}

export function descriptionOf(structure: string): string {
  return `headgate:${structure}`;
}

/**
 * A hash of all that only a reload can change: the global section, and each listener's structure with the id of its first
 * ACL, because ids with equal hashes depend on their order. `loadBalancers` in file order.
 */
export function structureHash(context: RenderContext, loadBalancers: readonly LoadBalancer[]): string {
  const digests = [templatesHash, globalValues(context)];
  for (const loadBalancer of loadBalancers) digests.push(structureDigest(loadBalancer, context.aclId));
  const profile = spareProfile(loadBalancers);
  if (profile !== undefined) digests.push(...spareListeners(profile).map(structureOf));
  return hash('sha256', digests.join('')).slice(0, 32);
}

const digests = new WeakMap<LoadBalancer, { aclId: RenderContext['aclId']; digest: string }>();

/** Cached by load balancer; '' if none of its listeners has a section. */
function structureDigest(loadBalancer: LoadBalancer, aclId: RenderContext['aclId']): string {
  const known = digests.get(loadBalancer);
  if (known?.aclId === aclId) return known.digest;
  const structures = loadBalancer.listeners
    .filter(hasSection)
    .map((listener) => `${structureOf(listener)}${aclId(listener.name, 0)}\n`);
  const digest = structures.length === 0 ? '' : hash('sha256', structures.join(''), 'base64');
  digests.set(loadBalancer, { aclId, digest });
  return digest;
}

/** By the folder of certificates: the landing has its own. */
const sections = new Map<string, WeakMap<LoadBalancer, Buffer>>();

/**
 * The listeners of one load balancer, each a `listen` section, because HAProxy 3.3 and newer refuse a frontend and a backend
 * of the same name; a backend alone if HAProxy only checks the members. Empty if it has no part in any of them. Bytes outside
 * V8's heap, which later writes of the file reuse.
 */
export function renderLoadBalancer(loadBalancer: LoadBalancer, context: RenderContext): Buffer {
  // With a socket that only the next worker has.
  if (loadBalancer.listeners.some((listener) => keepsSocket(listener, context)))
    return Buffer.from(sectionText(loadBalancer, context));
  const known = sections.get(context.certificates) ?? new WeakMap<LoadBalancer, Buffer>();
  sections.set(context.certificates, known);
  let section = known.get(loadBalancer);
  if (section === undefined) {
    const text = sectionText(loadBalancer, context);
    section = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
    section.write(text);
    known.set(loadBalancer, section);
  }
  return section;
}

function sectionText({ listeners }: LoadBalancer, context: RenderContext): string {
  return listeners
    .filter(hasSection)
    .map((listener) => listenerText(listener, context))
    .join('');
}

/** Empty without pools of routes. */
export function renderSpares(loadBalancers: readonly LoadBalancer[], context: RenderContext): Buffer {
  const profile = spareProfile(loadBalancers);
  if (profile === undefined) return Buffer.alloc(0);
  const sections = spareListeners(profile).map((spare) => listenerText(spare, context));
  return Buffer.from(`\n# For the pools of new routes, until the next reload.${sections.join('')}`);
}
