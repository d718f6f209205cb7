// The desired state of folders of manifests, for commands that need no running agent. Services have the addresses
// and ports that this host's agent has given them, or would give.

import { join } from 'node:path';
import { CLAIM_FILE } from '../address-keeper/address-keeper.ts';
import { askedAddress, poolsView } from '../address-keeper/asked-address.ts';
import { Addresses } from '../addresses/addresses.ts';
import { requesterOf, requestingOwners } from '../addresses/requesters.ts';
import type { HeadgateError } from '../base/errors.ts';
import { Certificates } from '../certificates/certificates.ts';
import { haproxyPaths } from '../haproxy/paths.ts';
import { createLog, formatOf } from '../host/log.ts';
import type { Secret } from '../kubernetes/certificate-objects.ts';
import { Cluster } from '../kubernetes/cluster.ts';
import { ManifestSource } from '../kubernetes/manifests/manifests.ts';
import { readClaimFile } from '../kubernetes/writers/claim-file.ts';
import { type DesiredState, emptyDesiredState } from '../model/desired-state.ts';
import type { Problem } from '../model/load-balancer.ts';
import type { Settings } from '../settings/settings.ts';
import { PemFiles } from '../sources/pem-files.ts';
import { RecordedPorts } from '../state/recorded-ports.ts';
import { GatewayTranslator } from '../translate/gateway/gateway-translator.ts';
import { IngressTranslator } from '../translate/ingress/ingress-translator.ts';
import { PoolTranslator } from '../translate/pool/pool-translator.ts';
import { ServiceTranslator } from '../translate/service/service-translator.ts';
import { translateChanged } from '../translate/translate.ts';
import { type TranslateSettings, translateSettings } from '../translate/translate-settings.ts';

export interface ReadState {
  readonly desired: DesiredState;
  /** The text of the error pages. */
  readonly pages: Certificates['pems']['pages'];
  readonly problems: readonly Problem[];
}

/** Reads all manifests once. Errors: SETTINGS_INVALID if a folder is missing. */
export async function desiredState(settings: Settings): Promise<ReadState> {
  return translated(await readManifests(new Cluster(), settings.manifests), settings);
}

/** Objects as a command has read them, before they are translated. */
export interface ReadObjects {
  readonly cluster: Cluster;
  readonly owners: ReadonlySet<string>;
  readonly problems: readonly Problem[];
}

/** Adds the objects of files to those that the cluster has. Errors: SETTINGS_INVALID if a folder is missing. */
export async function readManifests(cluster: Cluster, places: readonly string[]): Promise<ReadObjects> {
  const owners = new Set<string>();
  let problems: readonly Problem[] = [];
  const failures: HeadgateError[] = [];
  const manifests = new ManifestSource({
    places,
    snapshotDirectory: undefined,
    onChange: (change) => {
      problems = change.problems;
      for (const key of cluster.apply(change, 'manifests').owners) owners.add(key);
    },
    onFailure: (error) => failures.push(error),
  });
  await manifests.start();
  await manifests.close();
  const unread = failures.map(
    ({ message }): Problem => ({ object: 'Manifests', reason: 'InvalidFile', message }),
  );
  return { cluster, owners, problems: [...unread, ...problems] };
}

export interface TranslatedOptions {
  /** Told which Secrets and ConfigMaps the load balancers ask for. */
  readonly onAsked?: (plural: 'secrets' | 'configmaps', key: string) => void;
  /** By owner: addresses instead of those of pools. */
  readonly standIns?: ReadonlyMap<string, string>;
}

export async function translated(
  { cluster, owners, problems }: ReadObjects,
  settings: Settings,
  { onAsked = () => undefined, standIns = new Map() }: TranslatedOptions = {},
): Promise<ReadState> {
  const desired = emptyDesiredState(() => settings);
  const onChange = (secrets: readonly Secret[]): void =>
    void cluster.apply({ upserted: secrets, removed: [] }, 'files');
  new PemFiles({ places: settings.certificates, onChange }).look();
  const translating = translateSettings(settings);
  const { addresses, problems: ofAddresses } = await allocated(cluster, settings, translating);
  const certificates = new Certificates({
    secret: (key) => {
      onAsked('secrets', key);
      return cluster.secret(key);
    },
    configMap: (key) => {
      onAsked('configmaps', key);
      return cluster.configMap(key);
    },
    maxRsaBits: settings.maxRsaBits,
    accessToPair: () => ({ kind: 'read' }),
    accessToAuthority: () => ({ kind: 'read' }),
    isRead: () => true,
    onChanged: () => undefined,
  });
  const { keys } = haproxyPaths(settings.stateDir, settings.runtimeDir, settings.haproxyAccess);
  certificates.restoreTokenKeys(keys);
  const options = {
    cluster,
    settings: () => translating,
    ofPools: (key: string) => {
      const address = standIns.get(key);
      return address === undefined
        ? addresses.assignment(key)
        : { addresses: [{ address, ports: [] }], problems: [] };
    },
    certificates,
    desired,
  };
  const translators = {
    Service: new ServiceTranslator(options),
    Gateway: new GatewayTranslator(options),
    Ingress: new IngressTranslator(options),
    Pool: new PoolTranslator(options),
  };
  const log = createLog({ level: 'error', destination: process.stderr, format: formatOf(2) });
  new RecordedPorts({ stateDir: settings.stateDir, desired, log }).read();
  translateChanged(desired, translators, new Set(owners));
  const ofServices = [...desired.loadBalancers.values()].flatMap((each) => each.problems);
  return {
    desired,
    pages: certificates.pems.pages,
    problems: [...problems, ...ofAddresses, ...ofServices],
  };
}

/** Allocates from the claims file and the manifests; writes nothing. */
async function allocated(
  cluster: Cluster,
  settings: Settings,
  translating: TranslateSettings,
): Promise<{ readonly addresses: Addresses; readonly problems: readonly Problem[] }> {
  const file = await readClaimFile(join(settings.stateDir, ...CLAIM_FILE));
  const addresses = new Addresses();
  const pools = [...settings.pools, ...cluster.pools()];
  const upserted = [...file.claims, ...[...cluster.claims()].map(({ claim }) => claim)];
  addresses.update({ pools, claims: { upserted } }, Date.now());
  const view = poolsView(cluster, addresses, { isAny: pools.length > 0, isOfCluster: false });
  const requests = [...requestingOwners(cluster)].map(
    (key) => [key, askedAddress(requesterOf(cluster, key), translating, view)] as const,
  );
  const { releaseAfter } = settings;
  addresses.update({ requests, releaseAfter, leading: true }, Date.now());
  return { addresses, problems: [...file.problems, ...addresses.poolProblems()] };
}
