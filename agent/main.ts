// Headgate: `headgate run` is the agent; the other commands are in cli/.
// The sources deliver objects, translation makes load balancers of them, the loop turns these into traffic, and the
// observers report the result. wiring/agent-parts.ts creates these parts; this file starts and stops them. With the setting
// `amphora` it is another agent, which amphora.ts starts.

import { runAmphora } from './amphora.ts';
import { type Servers, startServers } from './answer/servers.ts';
import { version } from './base/version.ts';
import { cli } from './cli/cli.ts';
import { compactHeap } from './host/compact-heap.ts';
import { type Follower, loop } from './loop.ts';
import type { CurrentSettings } from './settings/current-settings.ts';
import { translateInitialState } from './sources/initial-state.ts';
import { type AgentParts, agentParts, currentSettings } from './wiring/agent-parts.ts';
import { configureVrrp } from './wiring/pair-parts.ts';
import { lowerWithoutPeer } from './wiring/vrrp-without-peer.ts';

async function run(argv: readonly string[]): Promise<number> {
  const settings = currentSettings(argv);
  return settings.now.amphora === '' ? await runAgent(settings) : await runAmphora(settings);
}

/** Runs until SIGTERM or SIGINT; traffic continues without the agent unless `stopDataplaneOnExit` is set. */
async function runAgent(current: CurrentSettings): Promise<number> {
  const parts = await agentParts(current);
  const { settings, log, metrics, changes, desired, translators, sources, addresses } = parts;
  const { dataplane, announcers, pair, connectionSync, writers } = parts;
  const { observers, recordedMembers, recordedPorts, programming, unblocked } = parts;

  sources.check();
  const servers = await startServers(parts);
  const { address: listen } = servers;
  log.info('Headgate runs', { version, listen, page: `http://${listen}/`, stateDir: settings.now.stateDir });
  const { promise: stopping, resolve: stopped } = Promise.withResolvers<void>();
  const stop = (signal: NodeJS.Signals): void => {
    log.info('Stopping', { signal });
    changes.close();
    stopped();
  };
  process
    .on('SIGHUP', () => reread(parts))
    .once('SIGTERM', stop)
    .once('SIGINT', stop);

  // Read and translate all objects: HAProxy must not start, or get a command, before the desired state is complete.
  dataplane.prepare();
  const reading = sources.start({
    addresses: {
      take: (differences, haveNodesChanged) => {
        addresses.take(differences, haveNodesChanged);
        if (differences?.poolsChanged || haveNodesChanged) parts.poolsChanged();
      },
      cannotRead: (problems) => addresses.cannotRead(problems),
    },
    onService: (key) => writers?.services.observed(key),
    onObject: (name) => {
      writers?.objects.observed(name);
      parts.objectReporter?.shown(name);
    },
    onPeers: () => parts.poolsChanged(),
    onReports: (kind, name) => parts.hostReports?.shown(kind, name),
    onPasswords: () => parts.bgp?.passwordsChanged(),
    onRefused: (problems) => {
      parts.objectReporter?.refused(problems);
      parts.hostReports?.cannotRead(problems);
    },
  });
  writers?.start();
  const readBy = await reading;
  await addresses.start();
  recordedMembers.read();
  recordedPorts.read();
  const flow = { changes, desired, translators, addresses };
  if (!(await translateInitialState({ flow, sources, readBy, dataplane, unblocked, stopping, log }))) {
    await end(parts, servers);
    return 0;
  }

  // Start the dataplane and the announcers with the desired state.
  parts.certificates.start();
  await pair?.start();
  await parts.bgpHost?.start();
  observers.began(desired.loadBalancers.keys());
  void (sources.api?.synced ?? Promise.resolve()).then(() => recordedMembers.allKnown());
  await Promise.race([dataplane.start(), stopping]);
  compactHeap();
  parts.poolsChanged();
  const announcer = following(announcers, parts.egress);
  announcer.follow(desired.loadBalancers.keys(), desired.loadBalancers);
  void parts.egress.start();
  void announcers.start();
  parts.hostReports?.start();
  void parts.endFormer();
  parts.local?.start();
  parts.foreign?.start();
  void connectionSync.start();
  const standing =
    pair === undefined && parts.bgpHost === undefined && parts.vrrp !== undefined
      ? lowerWithoutPeer(dataplane, announcers)
      : undefined;

  // Follow every change until the agent stops.
  const report = (keys: ReadonlySet<string>): void => observers.changed(keys);
  await loop({ flow, dataplane, announcer, metrics: metrics.loop, programming, report });

  standing?.close();
  await end(parts, servers);
  return 0;
}

/** All of them follow the load balancers. */
function following(...all: readonly Follower[]): Follower {
  return {
    follow: (keys, loadBalancers) => {
      const changed = [...keys];
      for (const each of all) each.follow(changed, loadBalancers);
    },
  };
}

/** SIGHUP: reads the settings again and gives the new ones to the parts. */
function reread(parts: AgentParts): void {
  const { settings, log, cluster, changes, desired, dataplane, vrrp, pair, addresses } = parts;
  if (!settings.reread(log)) return;
  const { now, translating } = settings;
  log.setLevel(now.logLevel);
  dataplane.configure(now);
  void configureVrrp(() => settings.now, vrrp, pair);
  void pair?.renew();
  void parts.bgpHost?.renew();
  parts.poolsChanged();
  parts.configureBgp();
  parts.connectionSync.configure();
  cluster.reclassify();
  addresses.configure(now, translating);
  changes.add([...cluster.ownerKeys(), ...desired.loadBalancers.keys()], performance.now());
}

/** Closes the sources first and the dataplane last, so that each part still writes what the earlier ones changed. */
async function end(parts: AgentParts, servers: Servers): Promise<void> {
  const {
    settings,
    log,
    sources,
    addresses,
    writers,
    reporter,
    dataplane,
    announcers,
    pair,
    connectionSync,
  } = parts;
  await servers.stopping();
  await sources.close();
  parts.certificates.close();
  await addresses.close();
  await parts.recordedMembers.close();
  await parts.recordedPorts.close();
  reporter?.close();
  parts.objectReporter?.close();
  await parts.hostReports?.close();
  await writers?.close();
  await announcers.close();
  parts.local?.close();
  await parts.foreign?.close();
  pair?.close();
  parts.bgpHost?.close();
  await connectionSync.close();
  if (settings.now.stopDataplaneOnExit) await parts.egress.stop();
  await parts.egress.close();
  await dataplane.close();
  if (settings.now.stopDataplaneOnExit) {
    await announcers.stop();
    await connectionSync.stop();
    await dataplane.stop(STOP_GRACE_MS);
  } else {
    const pids = await dataplane.processes();
    if (pids.length > 0) log.info('HAProxy continues to serve', { toEndIt: `kill ${pids.join(' ')}` });
  }
  servers.close();
}

/** How long connections may continue after the end of an agent that stops HAProxy. */
const STOP_GRACE_MS = 1_000;

const argv = process.argv.slice(2);
process.exitCode = await cli(argv, run);
if (argv[0] === 'run') process.exit();
