// Headgate: `headgate run` is the agent, which this file puts together; the other commands are in cli/.
// Reads the settings, joins the parts, and leaves the work to the loop.

import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { type AgentState, Metrics } from '../health/metrics.ts';
import { startHealthServer } from '../health/server.ts';
import { ServiceNotifier } from '../health/service-notifier.ts';
import { AddressKeeper } from './address-keeper.ts';
import { agentSocketPath, serveAgentSocket } from './agent-socket.ts';
import { apiClient, apiSource, claimHome } from './api.ts';
import { Changes } from './changes.ts';
import { cli } from './cli/cli.ts';
import { HeapCompaction } from './compact-heap.ts';
import { messageOf } from './errors.ts';
import { HaproxyDataplane } from './haproxy/dataplane.ts';
import { KeepalivedDataplane } from './keepalived/dataplane.ts';
import { Cluster, type ObjectSource, type ObjectsChange } from './kubernetes/cluster.ts';
import { ManifestSource } from './kubernetes/manifests/manifests.ts';
import { hostIdentity } from './kubernetes/writers/host-identity.ts';
import { createLog, type Log } from './log.ts';
import { loop } from './loop.ts';
import type { Problem } from './model.ts';
import { Operating } from './operating.ts';
import { Overview } from './overview.ts';
import type { Objects } from './pair/pair.ts';
import { pairSettings } from './pair/pair-settings.ts';
import { pairOf, pairOrders } from './pairing.ts';
import { ProblemLog, problemCounts } from './problem-log.ts';
import { ProgrammingLatency } from './programming-latency.ts';
import { Reporter } from './reporter.ts';
import { diffSettings, readSettings, type Settings } from './settings.ts';
import { standAlone } from './stand-alone.ts';
import { agentStatus, allProblems, explainService, isServed, type StatusSources } from './status.ts';
import { emptyModel, translateChanged, translateSettings } from './translate.ts';
import { version } from './version.ts';

/** Milliseconds for one round of the loop, after which the agent no longer counts as alive. */
const LOOP_DEADLINE = 30_000;

/** Runs until SIGTERM or SIGINT; unless told otherwise traffic goes on without it. */
async function run(argv: readonly string[]): Promise<number> {
  // bin/headgate sets it for the agent alone: HAProxy's threads shall not wait for one another.
  delete process.env.MALLOC_ARENA_MAX;
  let settings = settingsFrom(argv);
  let translating = translateSettings(settings);
  const log = createLog({ level: settings.logLevel });

  // The desired state, and what it comes from.
  const changes = new Changes();
  const cluster = new Cluster();
  const model = emptyModel();
  const sourceProblems = new Map<ObjectSource, readonly Problem[]>();

  // Metrics are read before there is anything to tell of the API server.
  let ofApi = (): AgentState['api'] => undefined;
  const metrics: Metrics = new Metrics(version, () => ({
    objects: cluster.counts(),
    loadBalancers: model.loadBalancers.size,
    ignoredServices: model.ignored.size,
    waiting: changes.waiting,
    problems: problemCounts(allProblems(sources)),
    haproxy: haproxy.status(),
    operating: operating.book.counts,
    api: ofApi(),
    vrrp: keepalived?.status(),
    pair: pair?.status(),
    addresses: addresses.status(),
  }));
  const compaction = new HeapCompaction();
  const replan = (keys: Iterable<string>): void => changes.addReplan(keys);
  const onKnown = (): void => replan([...cluster.services()].map(({ key }) => key));
  const haproxy = new HaproxyDataplane({
    settings,
    wanted: model.loadBalancers,
    replan,
    onKnown,
    onChecked: (keys) => {
      operating.touched(keys);
      overview.mark(keys);
    },
    onBoot: () => compaction.once(),
    metrics: metrics.dataplane,
    log,
  });
  const operating = new Operating({
    loadBalancers: model.loadBalancers,
    haproxy,
    onChanged: (keys) => {
      reporter?.report(keys);
      logProblems(keys);
    },
  });
  const { vrrp } = settings;
  const onState = (): void => pair?.roleChanged();
  const keepalived =
    vrrp &&
    new KeepalivedDataplane({ settings: { ...settings, vrrp }, metrics: metrics.dataplane, log, onState });
  let objects: Objects = 'unread';
  const pair = pairOf({
    settings: () => settings,
    model,
    haproxy,
    keepalived,
    objects: () => objects,
    metrics: metrics.pair,
    log,
  });
  const client = apiClient(settings);
  const addresses: AddressKeeper = new AddressKeeper({
    cluster,
    settings,
    translating,
    api: client,
    home: () => claimHome(api),
    isLeader: () => reporter?.isLeader ?? false,
    mayClaim: async (service, uid) => reporter?.claimed(service, uid) ?? false,
    onChanged: (keys) => changes.add(keys, performance.now()),
    onKept: (service) => reporter?.report([service]),
    onProblems: (problems) => problemLog.report('addresses', problems),
    metrics: metrics.addresses,
    log,
  });
  const sources: StatusSources = {
    version,
    startedAt: new Date(),
    cluster,
    model,
    haproxy,
    operating: operating.book,
    keepalived,
    pair,
    addresses,
    sourceProblems: () => [...sourceProblems.values()].flat(),
    zone: () => settings.zone,
  };
  const overview = new Overview(sources);

  // Those who ask.
  const answers = {
    status: () => agentStatus(sources),
    why: (query: URLSearchParams) => explainService(query.get('service') ?? '', sources),
  };
  const agentSocket = await serveAgentSocket(agentSocketPath(settings.runtimeDir), answers, pairOrders(pair));
  const alive = (): string => (metrics.loop.roundTime > LOOP_DEADLINE ? 'The loop does not come round' : '');
  const ready = (): string =>
    objects === 'unread' ? 'The objects have not been read yet' : haproxy.status().fault;
  const families = async () => {
    const [own, ofHaproxy] = await Promise.all([metrics.families(), haproxy.families()]);
    return [...own, ...ofHaproxy, ...(keepalived?.families() ?? [])];
  };
  const health = await startHealthServer(settings.listen, {
    families,
    alive,
    ready,
    look: (asked) => overview.look(asked),
  });
  const notifier = new ServiceNotifier({
    env: process.env,
    alive,
    ready,
    status: () => `Serving ${model.loadBalancers.size} load balancers`,
    onFailure: (error) => log.warn('Cannot tell systemd how the agent is', { error: messageOf(error) }),
  });
  notifier.start();
  log.info('Headgate runs', { version, listen: health.address, stateDir: settings.stateDir });

  // What an operator tells the running agent.
  const reread = (): void => {
    const next = rereadSettings(argv, settings, log);
    if (next === undefined) return;
    settings = next;
    translating = translateSettings(settings);
    log.setLevel(settings.logLevel);
    haproxy.configure(settings);
    if (settings.vrrp !== undefined) keepalived?.configure({ ...settings, vrrp: settings.vrrp });
    void pair?.renew();
    addresses.configure(settings, translating);
    changes.add(
      [...cluster.services()].map(({ key }) => key),
      performance.now(),
    );
  };
  const stopping = Promise.withResolvers<void>();
  const stop = (signal: NodeJS.Signals): void => {
    log.info('Stopping', { signal });
    changes.close();
    stopping.resolve();
  };
  process.on('SIGHUP', reread).once('SIGTERM', stop).once('SIGINT', stop);

  // The sources: each change marks the load balancers that it concerns.
  const problemLog = new ProblemLog(log);
  const logProblems = (keys: Iterable<string>): void => {
    for (const key of keys) {
      const own = model.loadBalancers.get(key);
      const problems = own && [
        ...own.problems,
        ...haproxy.problemsOf(own),
        ...operating.book.problemsOf(key),
      ];
      problemLog.report(key, problems ?? []);
    }
  };
  const take = (source: ObjectSource) => (change: ObjectsChange) => {
    metrics.loop.eventReceived(source);
    sourceProblems.set(source, change.problems);
    problemLog.report(source, change.problems);
    const { keys, nodesChanged, ...ofAddresses } = cluster.apply(change, source);
    addresses.take(ofAddresses);
    const concerned = nodesChanged ? new Set([...keys, ...model.onNodes]) : keys;
    changes.add(concerned, performance.now(), change.triggerTime);
  };
  const onService = (key: string): void => reporter?.observed(key);
  const api = client && apiSource(client, settings, { onChange: take('api'), onService }, metrics.api, log);
  const { leaseNamespace, finalizer, stateDir } = settings;
  const identity = client === undefined ? '' : await hostIdentity(hostname(), stateDir);
  const reporter =
    client &&
    new Reporter({
      api: client,
      currentService: (key) => api?.currentService(key),
      identity,
      cluster,
      model,
      haproxy,
      operating: operating.book,
      log,
      metrics: metrics.api,
      leaseNamespace,
      finalizer,
      isKept: (key) => addresses.isKept(key),
      onLeader: () => addresses.take(),
    });
  ofApi = () => reporter && { ...reporter.leadership(), watches: api?.status() ?? [] };
  if (client === undefined && settings.manifests.length === 0) {
    log.warn('There is nothing to serve: set "manifests", "kubeconfig" or "inCluster"');
  }
  api?.start();
  reporter?.start();
  const manifests = new ManifestSource({
    directories: settings.manifests,
    snapshotDirectory: join(settings.stateDir, 'manifests'),
    onChange: take('manifests'),
    onFailure: (error) => log.warn('Reading manifests', { error: messageOf(error) }),
  });
  await manifests.start();
  // What the folder holds is served even where no API server can be reached, which may be behind it; but what a HAProxy
  // serves already is not taken back because nobody says what it should be.
  const source = await api?.ready;
  await addresses.start();
  const translateAll = (): void => {
    const keys = changes.takeAll();
    const dirty = new Set([...keys, ...addresses.assign(keys)]);
    translateChanged(cluster, model, dirty, translating, addresses.ofPools);
  };
  translateAll();
  if (source === 'nothing') {
    const known = new Set(
      [...model.loadBalancers.values()].flatMap((each) => each.listeners.map(({ name }) => name)),
    );
    const others = (await haproxy.runningListeners()).filter((name) => !known.has(name));
    if (others.length > 0) {
      log.warn('Neither the API server nor a snapshot says what to serve: HAProxy serves on as it is', {
        listeners: others.length,
      });
      await Promise.race([api?.synced, stopping.promise]);
      translateAll();
    }
  }
  for (const { key, problems } of model.loadBalancers.values()) problemLog.report(key, problems);
  objects = api === undefined ? 'live' : 'kept';
  void api?.synced.then(() => {
    objects = 'live';
  });
  await pair?.start();
  pair?.touched(model.loadBalancers.keys());
  overview.mark(model.loadBalancers.keys());

  await Promise.race([haproxy.start(), stopping.promise]);
  compaction.once(); // where HAProxy ran already
  keepalived?.follow(model.loadBalancers.keys(), model.loadBalancers);
  void keepalived?.start();
  const standing = pair === undefined && keepalived && standAlone(haproxy, keepalived);
  await loop({
    changes,
    cluster,
    model,
    settings: () => translating,
    addresses,
    haproxy,
    keepalived,
    metrics: metrics.loop,
    programming: new ProgrammingLatency({
      now: Date.now,
      isServed: (key) => isServed(key, sources),
      observe: (path, seconds) => metrics.loop.programmed(path, seconds),
    }),
    report: (keys) => {
      reporter?.report(keys);
      pair?.touched(keys);
      operating.touched(keys);
      logProblems(keys);
      overview.mark(keys);
    },
  });

  await notifier.close();
  await manifests.close();
  await api?.close();
  await addresses.close();
  await reporter?.close();
  if (standing) standing.close();
  await keepalived?.close();
  pair?.close();
  await haproxy.close();
  if (settings.stopDataplaneOnExit) await keepalived?.stopKeepalived();
  if (settings.stopDataplaneOnExit) await haproxy.stopHaproxy(1_000);
  health.server.close();
  agentSocket.close();
  return 0;
}

function settingsFrom(argv: readonly string[]): Settings {
  return readSettings({ argv, env: process.env, readFile: (path) => readFileSync(path, 'utf8') });
}

/** The settings read again, with what differs in the log; undefined where they cannot be used: the old ones stay. */
function rereadSettings(argv: readonly string[], settings: Settings, log: Log): Settings | undefined {
  try {
    const next = settingsFrom(argv);
    const changed = diffSettings(settings, next);
    const kept = changed.filter(({ needsRestart }) => needsRestart).map(({ name }) => [name, settings[name]]);
    const taken = { ...next, ...Object.fromEntries(kept) };
    pairSettings(taken); // throws where they would leave this host without its peer
    if (changed.length === 0) log.info('Settings: nothing has changed');
    for (const { name, from, to, needsRestart } of changed) {
      const message = needsRestart
        ? 'Settings: a change that needs a restart'
        : 'Settings: a change is taken';
      log.info(message, { setting: name, from, to });
    }
    return taken;
  } catch (error) {
    log.error('Settings: kept as they were', { error: messageOf(error) });
    return undefined;
  }
}

const [command = 'help', ...rest] = process.argv.slice(2);
process.exitCode = await (command === 'run' ? cli.guarded(() => run(rest)) : cli.command(command, rest));
if (command === 'run') process.exit();
