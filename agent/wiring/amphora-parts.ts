// Creates the parts of an agent that is an amphora of Octavia, in the order in which a push flows: the REST API gets it,
// the load balancers run it, the heartbeats report it. Nothing runs yet; amphora.ts starts the parts.

import { hostname } from 'node:os';
import { join } from 'node:path';
import { AmphoraMetrics } from '../../health/metrics/amphora-metrics.ts';
import { messageOf } from '../base/errors.ts';
import { version } from '../base/version.ts';
import { createLog, type Log } from '../host/log.ts';
import { Datagrams } from '../octavia/datagrams/amphora-datagrams.ts';
import { Heartbeats } from '../octavia/heartbeat/heartbeats.ts';
import { LoadBalancers } from '../octavia/load-balancers/load-balancers.ts';
import { peerName } from '../octavia/load-balancers/peer-name.ts';
import { amphoraMachine } from '../octavia/machine/amphora-machine.ts';
import { Network } from '../octavia/network/amphora-network.ts';
import type { AmphoraDatagrams } from '../octavia/parts.ts';
import { readCredentials, replaceCertificate } from '../octavia/rest/own-certificate.ts';
import { RestServer } from '../octavia/rest/rest-server.ts';
import { routesOf } from '../octavia/rest/routes.ts';
import { CurrentAmphoraSettings } from '../octavia/settings/current-amphora-settings.ts';
import { CertificateStore } from '../octavia/store/certificate-store.ts';
import { TextStore } from '../octavia/store/text-store.ts';
import { Vrrp } from '../octavia/vrrp/amphora-vrrp.ts';
import { pushedFiles } from '../pushed/files.ts';
import { OwnHaproxy } from '../pushed/own-haproxy.ts';
import { groupOfImage } from '../pushed/second-file.ts';
import type { CurrentSettings } from '../settings/current-settings.ts';

export type AmphoraParts = ReturnType<typeof amphoraParts>;

/** Where Octavia's texts expect HAProxy and keepalived. */
const NAMESPACE = 'amphora-haproxy';

/** Errors: FILE_READ, SETTINGS_INVALID, OCTAVIA_INVALID: the files that the image has got at its boot cannot be used. */
export function amphoraParts(settings: CurrentSettings) {
  const { now } = settings;
  const log = createLog({ level: now.logLevel });
  const netns = now.netns === '' ? NAMESPACE : now.netns;
  const own = new CurrentAmphoraSettings(now.amphora);
  const { amphoraId, paths, haproxy: executable, rest } = own.now;
  const metrics = new AmphoraMetrics(version, () => ({
    amphoraId,
    loadBalancers: loadBalancers.views(),
    heartbeat: heartbeats.status(),
  }));

  // What the controller has plugged and pushed.
  const network = new Network({
    netns,
    file: join(now.stateDir, 'interfaces.json'),
    topology: () => (own.now.isActiveStandby ? 'ACTIVE_STANDBY' : 'SINGLE'),
    nft: now.nft,
    log,
  });
  const vrrp = new Vrrp({
    base: paths.base,
    runtimeDir: now.runtimeDir,
    netns,
    keepalived: now.keepalived,
    logFacility: () => own.now.logFacilities.administrative,
    log,
  });
  const checkAgain = () => checkRunning(loadBalancers, datagrams, vrrp, paths.base, log);
  const kernel = new Datagrams({
    folder: join(paths.base, 'lvs'),
    settings: { ...now, netns },
    log,
  });
  const datagrams = withChanges(kernel, checkAgain);
  const peer = peerName(amphoraId);
  const loadBalancers: LoadBalancers = new LoadBalancers({
    texts: new TextStore(paths.base),
    certificates: new CertificateStore(paths.certificates),
    haproxyOf: (id, onReplace) =>
      new OwnHaproxy({
        executable,
        netns,
        group: groupOfImage(join(paths.base, 'haproxy-default-user-group.conf')),
        files: pushedFiles(join(now.runtimeDir, 'octavia', id), peer),
        log,
        serverState: join(paths.base, id, 'servers-state'),
        onReplace,
      }),
    observers: {
      before: (rows) => heartbeats.observe(rows),
      restarted: (listeners) => heartbeats.restarted(listeners),
      forgotten: (listeners) => heartbeats.forget(listeners),
      pushed: (outcome) => metrics.pushed(outcome),
      served: () =>
        void network
          .announce()
          .catch((error: unknown) => log.warn('Cannot announce the VIPs', { error: messageOf(error) })),
      changed: checkAgain,
    },
    log,
  });

  // What the controller hears and asks.
  const heartbeats: Heartbeats = new Heartbeats({
    amphoraId,
    settings: () => own.now.heartbeat,
    folder: paths.base,
    sources: {
      isWell: () => vrrp.isWell(),
      running: () => loadBalancers.running(),
      datagrams: () => datagrams.report(),
    },
    log,
  });
  const server: RestServer = new RestServer({
    settings: rest,
    credentials: readCredentials(rest),
    routes: routesOf({
      loadBalancers,
      network,
      vrrp,
      datagrams,
      machine: amphoraMachine(hostname(), executable, now.keepalived),
      own: {
        replaceSettings: async (text) => {
          await own.replace(text);
          heartbeats.configure();
          log.info('The controller has replaced the settings of the amphora', { file: now.amphora });
        },
        replaceCertificate: async (pem) => {
          server.use(await replaceCertificate(rest, pem));
          log.info('The controller has replaced the certificate of the amphora');
        },
      },
    }),
    log,
  });
  return { settings, log, own, metrics, network, vrrp, kernel, datagrams, loadBalancers, heartbeats, server };
}

/** keepalived's check script learns what must answer. Never rejects: the next change tries again. */
async function checkRunning(
  loadBalancers: LoadBalancers,
  datagrams: AmphoraDatagrams,
  vrrp: Vrrp,
  base: string,
  log: Log,
): Promise<void> {
  const wanted = loadBalancers.views().filter(({ isWanted }) => isWanted);
  const sockets = wanted.map(({ id }) => join(base, `${id}.sock`));
  await vrrp
    .check({ sockets, hasDatagrams: datagrams.ids().length > 0 })
    .catch((error: unknown) =>
      log.error('Cannot write what the check script of keepalived checks', { error: messageOf(error) }),
    );
}

function withChanges(datagrams: AmphoraDatagrams, changed: () => Promise<void>): AmphoraDatagrams {
  return {
    put: (id, text) => datagrams.put(id, text).then(changed),
    remove: (id) => datagrams.remove(id).then(changed),
    get: (id) => datagrams.get(id),
    ids: () => datagrams.ids(),
    report: () => datagrams.report(),
  };
}
