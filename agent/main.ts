// Headgate: `headgate run` is the agent; the other commands are in cli/.
// Objects come from the sources, are translated, and become traffic in the loop; what became of them is reported.
// wiring/agent-parts.ts puts together the parts that do that.

import { type Servers, startServers } from './answer/servers.ts';
import { version } from './base/version.ts';
import { cli } from './cli/cli.ts';
import { compactHeap } from './host/compact-heap.ts';
import { loop } from './loop.ts';
import { ProgrammingLatency } from './report/programming-latency.ts';
import { translateInitialState } from './sources/initial-state.ts';
import { type AgentParts, agentParts } from './wiring/agent-parts.ts';
import { configureVrrp } from './wiring/pair-parts.ts';
import { lowerWithoutPeer } from './wiring/vrrp-without-peer.ts';

/** Runs until SIGTERM or SIGINT; traffic continues without it, unless the settings say otherwise. */
async function run(argv: readonly string[]): Promise<number> {
  const parts = await agentParts(argv);
  const { settings, log, metrics, changes, desired, translators, sources, addresses } = parts;
  const { dataplane, announcer, pair, writers, observers, keptMembers } = parts;

  const servers = await startServers(parts);
  log.info('Headgate runs', { version, listen: servers.address, stateDir: settings.now.stateDir });
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

  // The desired state is complete before HAProxy is started or gets a command.
  dataplane.prepare();
  const reading = sources.start({ addresses, onService: (key) => writers?.services.observed(key) });
  writers?.start();
  const readBy = await reading;
  await addresses.start();
  keptMembers.read();
  const flow = { changes, desired, translators, addresses };
  if (!(await translateInitialState({ ...flow, sources, readBy, dataplane, stopping, log }))) {
    await end(parts, servers);
    return 0;
  }

  await pair?.start();
  observers.began(desired.loadBalancers.keys());
  void (sources.api?.synced ?? Promise.resolve()).then(() => keptMembers.allKnown());
  await Promise.race([dataplane.start(), stopping]);
  compactHeap();
  announcer?.follow(desired.loadBalancers.keys(), desired.loadBalancers);
  void announcer?.start();
  const standing = announcer && pair === undefined ? lowerWithoutPeer(dataplane, announcer) : undefined;

  await loop({
    ...flow,
    dataplane,
    announcer,
    metrics: metrics.loop,
    programming: new ProgrammingLatency({
      now: Date.now,
      isServed: (key) =>
        desired.loadBalancers.get(key)?.listeners.some(({ name }) => dataplane.serves(name)) === true,
      observe: (path, seconds) => metrics.loop.programmed(seconds, path),
    }),
    report: (keys) => observers.changed(keys),
  });

  standing?.close();
  await end(parts, servers);
  return 0;
}

/** SIGHUP: takes new settings. */
function reread({
  settings,
  log,
  cluster,
  changes,
  dataplane,
  announcer,
  pair,
  addresses,
}: AgentParts): void {
  if (!settings.reread(log)) return;
  const { now, translating } = settings;
  log.setLevel(now.logLevel);
  dataplane.configure(now);
  void configureVrrp(() => settings.now, announcer, pair);
  void pair?.renew();
  cluster.reclassify();
  addresses.configure(now, translating);
  changes.add(cluster.serviceKeys(), performance.now());
}

/** Takes nothing new, writes down what is known, and lets go of the dataplanes. */
async function end(parts: AgentParts, servers: Servers): Promise<void> {
  const { settings, sources, addresses, writers, reporter, dataplane, announcer, pair, keptMembers } = parts;
  await servers.stopping();
  await sources.close();
  await addresses.close();
  await keptMembers.close();
  reporter?.close();
  await writers?.close();
  await announcer?.close();
  pair?.close();
  await dataplane.close();
  const { stopDataplaneOnExit } = settings.now;
  if (stopDataplaneOnExit) await announcer?.stopKeepalived();
  if (stopDataplaneOnExit) await dataplane.stop(1_000);
  servers.close();
}

const [command = 'help', ...rest] = process.argv.slice(2);
const isRun = command === 'run' && !rest.includes('--help');
process.exitCode = await (isRun
  ? cli.guarded(() => run(rest))
  : cli.command(command === 'run' ? 'help' : command, rest));
if (isRun) process.exit();
