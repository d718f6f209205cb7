// Routes of VRRP: the text of keepalived, and what starts it.

import type { Amphora } from './amphora.ts';
import { json, ok, replyOf, stored } from './reply.ts';
import type { Route } from './router.ts';

const MAX_TEXT_BYTES = 1024 * 1024;

export function vrrpRoutes({ vrrp }: Amphora): readonly Route[] {
  return [
    {
      method: 'PUT',
      pattern: 'vrrp/upload',
      answer: async (call) => {
        const body = await call.body(MAX_TEXT_BYTES);
        await vrrp.upload(body.toString('utf8'));
        return stored(200, body);
      },
    },
    {
      method: 'PUT',
      pattern: 'vrrp/:action',
      answer: async (call) => {
        const action = call.param('action').toLowerCase();
        if (action !== 'start' && action !== 'stop' && action !== 'reload')
          return json(400, { message: 'Invalid Request', details: `Unknown action: ${action}` });
        try {
          await vrrp[action]();
        } catch (error) {
          return replyOf(error, `Failed to ${action} octavia-keepalived service`);
        }
        return ok(202, `keepalived ${action === 'stop' ? 'stopp' : action}ed`);
      },
    },
  ];
}
