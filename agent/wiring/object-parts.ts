// Creates the sources of objects, the writers to the cluster, the addresses of Services, and what makes load balancers of the
// objects.

import { hostname } from 'node:os';
import { AddressKeeper } from '../address-keeper/address-keeper.ts';
import type { Certificates } from '../certificates/certificates.ts';
import type { Meter } from '../dataplane/meter.ts';
import { hostIdentity } from '../kubernetes/writers/host-identity.ts';
import { ClusterWriters } from '../report/cluster/cluster-writers.ts';
import { apiClient } from '../sources/cluster-api.ts';
import { Sources } from '../sources/sources.ts';
import { GatewayClassTranslator } from '../translate/gateway/gateway-class-translator.ts';
import { GatewayTranslator } from '../translate/gateway/gateway-translator.ts';
import { IngressTranslator } from '../translate/ingress/ingress-translator.ts';
import { PoolTranslator } from '../translate/pool/pool-translator.ts';
import { type ReadablePods, ServiceTranslator } from '../translate/service/service-translator.ts';
import type { CommonParts } from './common-parts.ts';

export type ObjectParts = Awaited<ReturnType<typeof objectParts>>;

export async function objectParts(
  common: CommonParts,
  certificates: Certificates,
  dataplane: Pick<Meter, 'status'>,
  egress: Pick<ReadablePods, 'known'>,
) {
  const { settings, cluster, desired, changes, changed, problemLog, metrics, log } = common;
  const { now } = settings;
  const api = apiClient(now);
  const sources = new Sources({
    settings: now,
    client: api,
    cluster,
    desired,
    changes,
    problemLog,
    metrics,
    log,
  });
  const writers =
    api &&
    new ClusterWriters({
      api,
      currentService: (key) => sources.api?.currentService(key),
      currentObject: (name) => sources.api?.currentObject(name),
      isFit: () => !dataplane.status().isAway,
      settings: { ...now, identity: await hostIdentity(hostname(), now.stateDir) },
      metrics: metrics.api,
      log,
    });
  const addresses = new AddressKeeper({
    cluster,
    settings: now,
    translating: settings.translating,
    store: { api, writers, home: () => sources.claimHome() },
    hooks: {
      onChanged: (keys) => changes.add(keys, performance.now()),
      onKept: (service) => changed([service]),
      onProblems: (problems) => problemLog.report('addresses', problems),
    },
    metrics: metrics.addresses,
    log,
  });
  const translating = {
    cluster,
    settings: () => settings.translating,
    ofPools: addresses.ofPools,
    certificates,
    desired,
  };
  const translators = {
    Service: new ServiceTranslator({
      ...translating,
      isUndecided: addresses.isUndecided,
      pods: {
        access: (namespace) => sources.accessToPods(namespace),
        known: (key) => egress.known(key),
      },
    }),
    Gateway: new GatewayTranslator(translating),
    GatewayClass: new GatewayClassTranslator(cluster, () => sources.definitionVersions()),
    Ingress: new IngressTranslator(translating),
    Pool: new PoolTranslator(translating),
  };
  return { client: api, sources, writers, addresses, translators };
}
