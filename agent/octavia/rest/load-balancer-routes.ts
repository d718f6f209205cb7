// Routes of load balancers: their texts and certificates, and what starts them.

import type { Amphora } from './amphora.ts';
import { isFileName, isId } from './names.ts';
import { json, md5, noLoadBalancer, ok, plain, type Reply, replyOf, routerError, stored } from './reply.ts';
import type { Call, Route } from './router.ts';

/** The text of 100,000 members is smaller. */
const MAX_TEXT_BYTES = 32 * 1024 * 1024;
/** A CRL of 200,000 entries is smaller. */
const MAX_CERTIFICATE_BYTES = 16 * 1024 * 1024;

const WRONG_FORMAT = json(400, { message: 'Filename has wrong format' });

export function loadBalancerRoutes(amphora: Amphora): readonly Route[] {
  const { loadBalancers } = amphora;
  const certificate =
    (answer: (lb: string, file: string, call: Call) => Promise<Reply>) =>
    async (call: Call): Promise<Reply> => {
      const [lb, file] = [call.param('lb'), call.param('file')];
      if (!isId(lb)) return routerError(404);
      return isFileName(file) ? await answer(lb, file, call) : WRONG_FORMAT;
    };
  return [
    {
      method: 'PUT',
      pattern: 'loadbalancer/:amphora/:lb/haproxy',
      answer: async (call) => {
        const lb = call.param('lb');
        if (!isId(lb) || !isId(call.param('amphora'))) return routerError(404);
        const body = await call.body(MAX_TEXT_BYTES);
        await loadBalancers.upload(lb, body.toString('utf8'));
        return stored(202, body);
      },
    },
    {
      method: 'GET',
      pattern: 'loadbalancer/:lb/haproxy',
      answer: async (call) => {
        const text = loadBalancers.text(call.param('lb'));
        return text === undefined ? noLoadBalancer(call.param('lb')) : plain(text);
      },
    },
    {
      method: 'PUT',
      pattern: 'loadbalancer/:id/:action',
      answer: (call) => act(amphora, call.param('id'), call.param('action').toLowerCase()),
    },
    {
      method: 'PUT',
      pattern: 'loadbalancer/:lb/certificates/:file',
      answer: certificate(async (lb, file, call) => {
        const body = await call.body(MAX_CERTIFICATE_BYTES);
        await loadBalancers.writeCertificate(lb, file, body);
        return { ...stored(200, body) };
      }),
    },
    {
      method: 'GET',
      pattern: 'loadbalancer/:lb/certificates/:file',
      answer: certificate(async (lb, file) => {
        const content = await loadBalancers.readCertificate(lb, file);
        const details = `No certificate with filename: ${file}`;
        if (content === undefined) return json(404, { message: 'Certificate Not Found', details });
        return json(200, { md5sum: md5(content) }, md5(content));
      }),
    },
    {
      method: 'DELETE',
      pattern: 'loadbalancer/:lb/certificates/:file',
      answer: certificate(async (lb, file) => {
        await loadBalancers.removeCertificate(lb, file);
        return ok(200);
      }),
    },
  ];
}

/** `id`: a load balancer, or a listener of UDP or SCTP, which is served since its upload. */
async function act({ loadBalancers, datagrams }: Amphora, id: string, action: string): Promise<Reply> {
  if (action !== 'start' && action !== 'stop' && action !== 'reload')
    return json(400, { message: 'Invalid Request', details: `Unknown action: ${action}` });
  if (datagrams.ids().includes(id)) return ok(202, `keepalivedlvs listener ${id} ${action}ed`);
  if (!loadBalancers.has(id)) return noLoadBalancer(id);
  try {
    if (action === 'stop') await loadBalancers.stop(id);
    else await loadBalancers.serve(id);
  } catch (error) {
    return replyOf(error, `Error ${action}ing haproxy`);
  }
  if (action !== 'start') return ok(202, `Listener ${id} ${action === 'stop' ? 'stopped' : 'reloaded'}`);
  return ok(202, `Configuration file is valid\nhaproxy daemon for ${id} started`);
}
