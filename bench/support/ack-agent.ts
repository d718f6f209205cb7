// Runs the agent's parse, store, translate, plan and apply steps with their own HAProxy, or with nft. Feeds them events as a
// watch delivers them, and measures the time from each event to the acknowledgement.

import { setTimeout as delay } from 'node:timers/promises';
import { Changes } from '../../agent/changes.ts';
import { Dataplanes } from '../../agent/dataplane/dataplanes.ts';
import { EngineChanges } from '../../agent/dataplane/engine-changes.ts';
import { HaproxyDataplane } from '../../agent/haproxy/dataplane.ts';
import { createLog } from '../../agent/host/log.ts';
import { Cluster } from '../../agent/kubernetes/cluster.ts';
import { parseObject } from '../../agent/kubernetes/parse-object.ts';
import { loop } from '../../agent/loop.ts';
import { emptyDesiredState } from '../../agent/model/desired-state.ts';
import { NftablesDataplane } from '../../agent/nftables/dataplane.ts';
import { ProgrammingLatency } from '../../agent/report/programming-latency.ts';
import { readSettings, type Settings } from '../../agent/settings/settings.ts';
import { ServiceTranslator } from '../../agent/translate/service/service-translator.ts';
import { translateChanged } from '../../agent/translate/translate.ts';
import { translateSettings } from '../../agent/translate/translate-settings.ts';
import { AckFeed, type AckOrder, serveAck } from './ack-feed.ts';
import { serviceObject, sliceObject } from './objects.ts';

const NO_CERTIFICATE = { content: undefined, fault: '', isMissing: true, isExpired: false };

await serveAck(async (order: AckOrder) => {
  const { directory, haproxy: executable, engine = 'haproxy' } = order;
  const argv = ['--state-dir', `${directory}/s`, '--runtime-dir', `${directory}/r`, '--haproxy', executable];
  argv.push('--defaults', `engine=${engine}`);
  const settings = readSettings({ argv, env: {}, readFile: () => '' });
  const translating = translateSettings(settings);
  const log = createLog({ level: 'warn' });
  const changes = new Changes();
  const cluster = new Cluster();
  const desired = emptyDesiredState();
  const service = new ServiceTranslator({
    cluster,
    settings: () => translating,
    ofPools: () => undefined,
    certificates: {
      pair: () => NO_CERTIFICATE,
      authority: () => NO_CERTIFICATE,
      crl: () => NO_CERTIFICATE,
      users: () => NO_CERTIFICATE,
      tokenKeys: () => ({ ...NO_CERTIFICATE, content: undefined }),
      errorPages: () => ({ ...NO_CERTIFICATE, content: undefined }),
    },
    desired,
  });
  const translators = { Service: service };
  const feed = new AckFeed(order);

  const receive = (object: unknown, since: number): void => {
    const { objects, problems } = parseObject(object, '');
    if (problems.length > 0) throw new Error(problems[0]?.message);
    const { owners, dependencies } = cluster.apply({ upserted: objects, removed: [] }, 'manifests');
    changes.add(new Set([...owners, ...desired.dependents.of(dependencies)]), since);
  };
  for (const spec of feed.specs) {
    receive(serviceObject(spec), 0);
    receive(sliceObject(spec), 0);
  }
  translateChanged(desired, translators, changes.takeAll());

  let acknowledged: ((milliseconds: number) => void) | undefined;
  const nothing = (): void => undefined;
  const metrics = {
    planned: nothing,
    acknowledged: (seconds: number) => acknowledged?.(seconds * 1_000),
    roundStarted: nothing,
    roundEnded: nothing,
    commandsAcknowledged: nothing,
    commandRefused: nothing,
    repaired: nothing,
    reloaded: nothing,
    ejected: nothing,
    persisted: nothing,
  };
  const replan = (keys: Iterable<string>): void => changes.addReplan(keys);
  const common = { settings, desired: desired.loadBalancers, replan, metrics, log };
  const changesOfEngine = new EngineChanges(desired.loadBalancers);
  const dataplane =
    engine === 'haproxy'
      ? new HaproxyDataplane(common)
      : new NftablesDataplane({
          ...common,
          sources: () => ({ groups: [], groupOf: () => 0 }),
          checkedMembers: () => new Map(),
          onChanged: nothing,
        });
  await dataplane.start();
  const looping = loop({
    flow: { changes, desired, translators, addresses: { assign: () => new Set() } },
    dataplane: new Dataplanes<Settings>(desired.loadBalancers, changesOfEngine, { engine, dataplane }),
    announcer: undefined,
    metrics,
    programming: new ProgrammingLatency({ now: Date.now, isServed: () => true, observe: nothing }),
    report: nothing,
  });
  while (changes.waiting > 0) await delay(20);

  return {
    sample: () =>
      new Promise((resolve) => {
        acknowledged = resolve;
        const text = feed.next();
        const since = performance.now();
        receive(JSON.parse(text), since);
      }),
    stop: async () => {
      changes.close();
      await looping;
      await dataplane.close();
      await dataplane.stop(100);
    },
  };
});
