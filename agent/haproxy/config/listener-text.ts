// The section of haproxy.cfg for one listener, one of four kinds: a listener with a pool of its own, a listener with routes, a
// pool that routes send to, and members that HAProxy checks for the kernel. Pure, except that it reads the templates at the start.
// Why: docs/design/decisions/0002-one-section-for-each-listener.md

import { loadTemplate, type Template, type View } from '../../base/template.ts';
import type { Listener } from '../../model/load-balancer.ts';
import { isOnlyChecked, isRouted, isRoutePool } from './listener-config.ts';
import {
  besideView,
  clientsView,
  fallbackView,
  httpView,
  membersView,
  poolClientsView,
  poolView,
} from './listener-view.ts';
import type { RenderContext } from './render-context.ts';

const templates = {
  listener: loadTemplate('haproxy/listener'),
  routedListener: loadTemplate('haproxy/routed-listener'),
  routePool: loadTemplate('haproxy/route-pool'),
  checkedMembers: loadTemplate('haproxy/checked-members'),
  // Parts of those.
  pool: loadTemplate('haproxy/pool'),
  members: loadTemplate('haproxy/members'),
  clients: loadTemplate('haproxy/clients'),
  http: loadTemplate('haproxy/http'),
  beside: loadTemplate('haproxy/beside'),
};

/** For the structure of a file. */
export const listenerTemplates = Object.values(templates)
  .map(({ text }) => text)
  .join('');

export function listenerText(listener: Listener, context: RenderContext): string {
  const { name, mode, pool } = listener;
  const { persistence } = pool;
  const members = part(templates.members, membersView(listener, context));
  if (isOnlyChecked(listener))
    return templates.checkedMembers({ name, connectTimeout: pool.timeouts.connect, members });
  const ofPool = (): string => part(templates.pool, poolView(listener));
  if (isRoutePool(listener))
    return templates.routePool({
      name,
      mode,
      persistence,
      pool: ofPool(),
      members,
      ...poolClientsView(listener, context),
    });
  const http = mode === 'http' ? part(templates.http, httpView(listener, context)) : '';
  const clients = part(templates.clients, { ...clientsView(listener, context), http });
  const beside = part(templates.beside, besideView(listener, context));
  if (isRouted(listener)) return templates.routedListener({ name, mode, clients, beside });
  const own = { name, mode, persistence, pool: ofPool(), members, clients, beside };
  return templates.listener({ ...own, ...fallbackView(listener, context) });
}

/** Without its last line end, which the template around it has. */
function part(template: Template, view: View): string {
  return template(view).trimEnd();
}
