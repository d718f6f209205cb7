// Routes of the amphora itself: versions, what the machine has, the settings, the own certificate.

import type { Amphora } from './amphora.ts';
import { json, ok, replyOf } from './reply.ts';
import { API_VERSION, type Route } from './router.ts';

const MAX_BYTES = 1024 * 1024;

export function machineRoutes(amphora: Amphora): readonly Route[] {
  const { machine, own } = amphora;
  const info = async () => {
    const { haproxy, keepalived } = await machine.versions();
    return {
      hostname: machine.hostname,
      haproxy_version: haproxy,
      api_version: API_VERSION,
      keepalived_version: keepalived,
      // The kernel path serves UDP and SCTP.
      ipvsadm_version: '',
    };
  };
  return [
    { method: 'GET', pattern: '', answer: async () => json(200, { api_version: API_VERSION }) },
    { method: 'GET', pattern: 'info', answer: async () => json(200, await info()) },
    {
      method: 'GET',
      pattern: 'details',
      answer: async () => json(200, { ...(await info()), ...(await detailsOf(amphora)) }),
    },
    {
      method: 'PUT',
      pattern: 'config',
      answer: async (call) => {
        const body = await call.body(MAX_BYTES);
        try {
          await own.replaceSettings(body.toString('utf8'));
        } catch (error) {
          return { ...replyOf(error, 'Unable to update amphora-agent configuration.'), status: 500 };
        }
        return ok(202);
      },
    },
    {
      method: 'PUT',
      pattern: 'certificate',
      answer: async (call) => {
        const body = await call.body(MAX_BYTES);
        await own.replaceCertificate(body.toString('utf8'));
        return ok(202);
      },
    },
  ];
}

async function detailsOf({ machine, loadBalancers, datagrams, network }: Amphora): Promise<object> {
  const [details, traffic] = await Promise.all([machine.details(), network.traffic()]);
  const views = loadBalancers.views();
  const udp = datagrams.ids();
  const networks = [...traffic].filter(([name]) => name.startsWith('eth'));
  return {
    ...details,
    networks: Object.fromEntries(
      networks.map(([name, { tx, rx }]) => [name, { network_tx: tx, network_rx: rx }]),
    ),
    active: true,
    haproxy_count: views.filter(({ haproxy }) => haproxy.isRunning).length,
    active_tuned_profiles: '',
    // As Octavia's own agent, which does not know them either.
    topology: 'SINGLE',
    topology_status: 'OK',
    listeners: [...views.flatMap(({ uploaded }) => uploaded.listeners.map(({ id }) => id)), ...udp].sort(),
    packages: {},
    lvs_listener_process_count: udp.length,
  };
}
