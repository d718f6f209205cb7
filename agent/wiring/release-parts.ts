// Creates what carries out the order to release, and connects it with the parts that follow the mark.

import { callProvisioner } from '../address-keeper/provisioner-call.ts';
import { systemClock } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import type { DataplaneFacts } from '../dataplane/forwarder.ts';
import { release } from '../kubernetes/writers/release.ts';
import { objectOf, ownerOf } from '../model/names.ts';
import type { BgpHost } from '../pair/bgp-host.ts';
import type { Pair } from '../pair/pair.ts';
import { ReleaseOrder } from '../release/release-order.ts';
import { apiClient } from '../sources/cluster-api.ts';
import { hostAddresses } from '../vips/host-addresses.ts';
import type { CommonParts } from './common-parts.ts';
import type { ObjectParts } from './object-parts.ts';
import type { reachParts } from './reach-parts.ts';

/** For one call. */
const DEADLINE_MS = 30_000;

export interface ReleasedParts {
  readonly common: CommonParts;
  readonly dataplane: DataplaneFacts;
  readonly reached: Pick<ReturnType<typeof reachParts>, 'announcers'>;
  readonly objects: ObjectParts;
  readonly pair: Pair | undefined;
  readonly bgpHost: BgpHost | undefined;
}

/** `unblocked` resolves once nothing of the cluster is awaited any more. */
export function releaseParts({ common, dataplane, reached, objects, pair, bgpHost }: ReleasedParts) {
  const { announcers } = reached;
  const { settings, cluster, desired, changes, metrics, releaseMark: mark, log } = common;
  const { addresses, writers } = objects;
  const { promise: unblocked, resolve: unblock } = Promise.withResolvers<void>();
  const apply = (): void => {
    const differences = cluster.recount();
    addresses.take(differences);
    addresses.releasedChanged();
    changes.add(
      [...differences.owners, ...cluster.ownerKeys(), ...desired.loadBalancers.keys()],
      performance.now(),
    );
    (pair ?? bgpHost)?.releasedChanged();
    if (mark.scope.all) unblock();
  };
  if (mark.scope.all) unblock();
  const releaseOrder = new ReleaseOrder({
    mark,
    host: {
      vips: function* () {
        for (const [key, { vips }] of desired.loadBalancers)
          if (ownerOf(key).kind !== 'Pool') yield [key, vips.map(({ address }) => address)] as const;
      },
      apply,
      get isReading() {
        return objects.sources.objects === 'unread';
      },
      get isBusy() {
        return changes.waiting > 0 || metrics.loop.roundTime > 0;
      },
      stays: async (owners, vips) => {
        const served = owners.filter((owner) => dataplane.servesElsewhere(owner));
        const announced = vips.filter((address) => announcers.withheld(address) === '');
        const here = announcers.isEmpty ? [] : await hostAddresses(settings.now.netns);
        const held = here.filter(({ address }) => vips.includes(address) && !announced.includes(address));
        return [
          ...served.map((owner) => `${objectOf(owner)}: this host still serves it`),
          ...announced.map((address) => `${address}: this host still announces it`),
          ...held.map((each) => `${each.address}: it is on ${each.interface} of this host`),
        ];
      },
    },
    claims: {
      all: () => addresses.claims(),
      on: (address) => addresses.claimsOn(address),
      publicOf: (address) => addresses.publicOf(address),
    },
    provision: () => {
      const { provisioner: program } = settings.now;
      if (program === '') return undefined;
      const call = { program, log, clock: systemClock, deadlineMs: DEADLINE_MS, children: new Set<never>() };
      return (request, others) =>
        callProvisioner({ ...call, isClosed: () => false }, { ...request, action: 'release', others });
    },
    cluster: writers && {
      otherLeader: () => {
        const { leading, leader } = writers.status();
        return leading ? '' : leader;
      },
      clean: async function* ({ all, namespaces }, isDryRun) {
        const api = apiClient(settings.now);
        if (api === undefined) return;
        const scope = all ? settings.now.namespaces : namespaces;
        try {
          yield* release({ api, namespaces: scope, ofClasses: all, isDryRun, now: () => new Date() });
        } finally {
          api.close();
        }
      },
    },
    others: () => (pair ?? bgpHost)?.releasedByOthers() ?? [],
    clock: systemClock,
  });
  const adopt = (): void => {
    for (const { scope } of (pair ?? bgpHost)?.releasedByOthers() ?? [])
      if (scope !== undefined && scope.at > mark.scope.at)
        void releaseOrder
          .adopt(scope)
          .catch((error: unknown) =>
            log.error('Cannot release what another host has released', { error: messageOf(error) }),
          );
  };
  (pair ?? bgpHost)?.onReleased(adopt);
  if (mark.fault !== '')
    log.error('The order to release cannot be read: it does not count', { error: mark.fault });
  const { all, namespaces } = mark.scope;
  if (all || namespaces.length > 0)
    log.warn('An operator has released objects: headgate release --undo ends that', {
      released: all ? 'all' : namespaces.join(' '),
    });
  return { releaseOrder, unblocked };
}
