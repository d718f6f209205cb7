// A listener that keeps its structure, what only a reload can change, while all else of it continues to change: of a load
// balancer that is refused, or that another process serves in its new form. Pure.

import { closedRoutes } from './client-guards.ts';
import type { Certificate, Listener, Tls } from './load-balancer.ts';
import type { Routing } from './routes.ts';

/** `listener` with all of `today` that needs no reload. Both have the same name. */
export function withStructureOf(listener: Listener, today: Listener): Listener {
  const { allowedCidrs } = today;
  const dispatch = listener.dispatch && (today.dispatch ?? listener.dispatch);
  return {
    ...listener,
    allowedCidrs,
    routing: routingOf(listener, today),
    ...(dispatch && { dispatch }),
    tls: listener.tls && renewed(listener.tls, today.tls),
    pool: { ...listener.pool, members: today.pool.members },
  };
}

/** Today's routes if the rules of before can carry them out, and none that today's TLS guards and that of before does not. */
function routingOf(listener: Listener, now: Listener): Routing | undefined {
  const [before, today] = [listener.routing, now.routing];
  if (before === undefined || today === undefined || before.kind !== today.kind) return before;
  if (before.kind !== 'http' || today.kind !== 'http') return today;
  const { detectMisdirected } = before;
  const routing = closedRoutes({ routing: before, tls: listener.tls }, { routing: today, tls: now.tls });
  return routing.detectMisdirected === detectMisdirected ? routing : { ...routing, detectMisdirected };
}

/** TLS of before with the present contents of its certificates. */
function renewed(before: Tls, today: Tls | undefined): Tls {
  const now = [today, ...(today?.sections ?? [])].flatMap((each) => each?.certificates ?? []);
  const renew = (certificates: readonly Certificate[]): readonly Certificate[] =>
    certificates.map((each) => now.find(({ name }) => name === each.name) ?? each);
  const sections = before.sections?.map((each) => ({ ...each, certificates: renew(each.certificates) }));
  return { ...before, certificates: renew(before.certificates), ...(sections && { sections }) };
}
