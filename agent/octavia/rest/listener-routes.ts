// Routes of listeners: all of them, and those of UDP and SCTP, whose texts are keepalived's.

import type { Amphora } from './amphora.ts';
import { isId } from './names.ts';
import { json, ok, plain, replyOf, routerError, stored } from './reply.ts';
import type { Route } from './router.ts';

const MAX_TEXT_BYTES = 4 * 1024 * 1024;

export function listenerRoutes({ loadBalancers, datagrams }: Amphora): readonly Route[] {
  return [
    {
      method: 'GET',
      pattern: 'listeners',
      answer: async () =>
        json(200, [
          ...loadBalancers
            .views()
            .flatMap(({ uploaded }) =>
              uploaded.listeners.map(({ id, type }) => ({ status: 'ACTIVE', uuid: id, type })),
            ),
          ...datagrams.ids().map((id) => ({ status: 'ACTIVE', uuid: id, type: 'UDP' })),
        ]),
    },
    {
      method: 'DELETE',
      pattern: 'listeners/:id',
      answer: async (call) => {
        const id = call.param('id');
        if (!isId(id)) return routerError(404);
        try {
          await (datagrams.ids().includes(id) ? datagrams.remove(id) : loadBalancers.remove(id));
        } catch (error) {
          return replyOf(error, 'Error stopping haproxy');
        }
        return ok(200);
      },
    },
    {
      method: 'PUT',
      pattern: 'listeners/:amphora/:id/udp_listener',
      answer: async (call) => {
        const id = call.param('id');
        if (!isId(id) || !isId(call.param('amphora'))) return routerError(404);
        const body = await call.body(MAX_TEXT_BYTES);
        await datagrams.put(id, body.toString('utf8'));
        return stored(200, body);
      },
    },
    {
      method: 'GET',
      pattern: 'listeners/:id/udp_listener',
      answer: async (call) => {
        const id = call.param('id');
        const text = isId(id) ? await datagrams.get(id) : undefined;
        if (text !== undefined) return plain(text);
        return json(404, { message: 'UDP Listener Not Found', details: `No UDP listener with UUID: ${id}` });
      },
    },
  ];
}
