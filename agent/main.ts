// Headgate: `headgate run` is the agent; the other commands are in cli/.
// Objects come from the sources, are translated, and become traffic in the loop; what became of them is told, and asked
// for. parts.ts puts together what does that.

import { type Answering, startAnswering } from './answer/servers.ts';
import { version } from './base/version.ts';
import { cli } from './cli/cli.ts';
import { compactHeap } from './host/compact-heap.ts';
import { loop } from './loop.ts';
import { ProgrammingLatency } from './report/programming-latency.ts';
import { isServed } from './report/status.ts';
import { translateFirst } from './sources/initial-state.ts';
import { type AgentParts, agentParts } from './wiring/agent-parts.ts';
import { configureVrrp } from './wiring/pair-parts.ts';
import { standAlone } from './wiring/vrrp-without-peer.ts';

/** Runs until SIGTERM or SIGINT; unless told otherwise traffic goes on without it. */
async function run(argv: readonly string[]): Promise<number> {
  const parts = await agentParts(argv);
  const { settings, log, metrics, cluster, changes, model, addresses, sources } = parts;
  const { haproxy, keepalived, pair, reporter, known, telling, lastMembers } = parts;

  const answering = await startAnswering(parts);
  log.info('Headgate runs', { version, listen: answering.address, stateDir: settings.now.stateDir });
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

  // What is desired is known before HAProxy is started or told anything.
  haproxy.prepare();
  const reading = sources.start();
  reporter?.start();
  const readBy = await reading;
  await addresses.start();
  await lastMembers.read();
  const translating = () => settings.translating;
  const desired = { changes, cluster, model, settings: translating, addresses };
  const isKnown = await translateFirst({ ...desired, sources, readBy, haproxy, stopping, log });
  if (!isKnown) {
    await end(parts, answering);
    return 0;
  }

  await pair?.start();
  telling.first();
  lastMembers.note(model.loadBalancers.keys());
  void (sources.api?.synced ?? Promise.resolve()).then(() => lastMembers.allKnown());
  await Promise.race([haproxy.start(), stopping]);
  compactHeap();
  keepalived?.follow(model.loadBalancers.keys(), model.loadBalancers);
  void keepalived?.start();
  const standing = keepalived && pair === undefined ? standAlone(haproxy, keepalived) : undefined;

  await loop({
    ...desired,
    haproxy,
    keepalived,
    metrics: metrics.loop,
    programming: new ProgrammingLatency({
      now: Date.now,
      isServed: (key) => isServed(key, known),
      observe: (path, seconds) => metrics.loop.programmed(path, seconds),
    }),
    report: (keys) => {
      telling.touched(keys);
      lastMembers.note(keys);
    },
  });

  standing?.close();
  await end(parts, answering);
  return 0;
}

/** What an operator says to the running agent. */
function reread({ settings, log, cluster, changes, haproxy, keepalived, pair, addresses }: AgentParts): void {
  if (!settings.reread(log)) return;
  const { now, translating } = settings;
  log.setLevel(now.logLevel);
  haproxy.configure(now);
  void configureVrrp(() => settings.now, keepalived, pair);
  void pair?.renew();
  cluster.judgeAgain();
  addresses.configure(now, translating);
  changes.add(cluster.serviceKeys(), performance.now());
}

/** Nothing new is taken in, what was told is written down, and the dataplanes are let go. */
async function end(parts: AgentParts, answering: Answering): Promise<void> {
  const { settings, sources, addresses, reporter, haproxy, keepalived, pair, lastMembers } = parts;
  await answering.stopping();
  await sources.close();
  await addresses.close();
  await lastMembers.close();
  await reporter?.close();
  await keepalived?.close();
  pair?.close();
  await haproxy.close();
  const { stopDataplaneOnExit } = settings.now;
  if (stopDataplaneOnExit) await keepalived?.stopKeepalived();
  if (stopDataplaneOnExit) await haproxy.stopHaproxy(1_000);
  answering.close();
}

const [command = 'help', ...rest] = process.argv.slice(2);
const isRun = command === 'run' && !rest.includes('--help');
process.exitCode = await (isRun
  ? cli.guarded(() => run(rest))
  : cli.command(command === 'run' ? 'help' : command, rest));
if (isRun) process.exit();
