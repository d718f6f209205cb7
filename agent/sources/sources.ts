// The sources of objects: the cluster's API server, if the settings name one, and folders of manifests. Their changes go
// into the store of objects, and mark the load balancers that they concern.

import { join } from 'node:path';
import type { Metrics } from '../../health/metrics.ts';
import type { AddressKeeper } from '../address-keeper/address-keeper.ts';
import type { ClaimHome } from '../address-keeper/stored-claims.ts';
import type { DiskFile } from '../base/disk-file.ts';
import { messageOf } from '../base/errors.ts';
import type { ObjectName } from '../certificates/certificates.ts';
import type { Access } from '../certificates/last-good.ts';
import type { Changes } from '../changes.ts';
import type { Log } from '../host/log.ts';
import type { ApiSource, ReadyBy } from '../kubernetes/api/api-source.ts';
import type { AskedObject, CertificateSource } from '../kubernetes/api/certificate-source.ts';
import type { ApiClient } from '../kubernetes/api/client.ts';
import { DefinitionVersions, type VersionByDefinition } from '../kubernetes/api/definition-versions.ts';
import type { PasswordSource, ReadPassword } from '../kubernetes/api/password-source.ts';
import type { Cluster, ObjectSource, ObjectsChange } from '../kubernetes/cluster.ts';
import type { ReportedKind } from '../kubernetes/host-report.ts';
import { ManifestSource } from '../kubernetes/manifests/manifests.ts';
import type { DesiredState } from '../model/desired-state.ts';
import type { Problem } from '../model/load-balancer.ts';
import { ownerOf } from '../model/names.ts';
import type { StatusName } from '../model/object-statuses.ts';
import type { ObjectsState } from '../pair/standing/own-standing.ts';
import type { ProblemLog } from '../report/problem-log.ts';
import { nothingToServe, type Settings } from '../settings/settings.ts';
import { apiSource, certificateSource, claimHome, passwordSource } from './cluster-api.ts';
import { PemFiles } from './pem-files.ts';

export interface SourcesOptions {
  readonly settings: Settings;
  /** undefined if the settings name no cluster. */
  readonly client: ApiClient | undefined;
  readonly cluster: Cluster;
  readonly desired: Pick<DesiredState, 'dependents'>;
  readonly changes: Changes;
  readonly problemLog: ProblemLog;
  readonly metrics: Pick<Metrics, 'loop' | 'api'>;
  readonly log: Log;
}

/** The receivers of changes besides the store. */
export interface SourceReceivers {
  readonly addresses: Pick<AddressKeeper, 'take' | 'cannotRead'>;
  /** The API has shown this Service. */
  readonly onService: (key: string) => void;
  /** The API has shown this object of the Gateway API, or Ingress. */
  readonly onObject: (name: StatusName) => void;
  /** The API has shown this object, in whose status hosts report. */
  readonly onReports: (kind: ReportedKind, key: string) => void;
  /** BGPPeers have changed. */
  readonly onPeers: () => void;
  /** Passwords of peers may have changed. */
  readonly onPasswords: () => void;
  /** The API server's objects that cannot be read: all of them, at each change. */
  readonly onRefused: (problems: readonly Problem[]) => void;
}

export class Sources {
  readonly api: ApiSource | undefined;
  readonly #options: SourcesOptions;
  readonly #manifests: ManifestSource;
  readonly #pemFiles: PemFiles;
  readonly #certificates: CertificateSource | undefined;
  readonly #passwords: PasswordSource | undefined;
  readonly #definitions: DefinitionVersions | undefined;
  /** The API server, or its snapshot, has given its objects. */
  #areRead: boolean;
  readonly #problems = new Map<ObjectSource, readonly Problem[]>();
  #objects: ObjectsState = 'unread';
  #receivers: SourceReceivers | undefined;

  constructor(options: SourcesOptions) {
    const { settings, client, metrics, log } = options;
    const onService = (key: string): void => this.#receivers?.onService(key);
    const onObject = (name: StatusName): void => this.#receivers?.onObject(name);
    const onReports: SourceReceivers['onReports'] = (...named) => this.#receivers?.onReports(...named);
    this.#options = options;
    this.#areRead = client === undefined;
    const onChange = this.#receiver('api');
    this.api =
      client && apiSource(client, settings, { onChange, onService, onObject, onReports }, metrics.api, log);
    this.#passwords =
      client && passwordSource(client, settings, () => this.#receivers?.onPasswords(), metrics.api, log);
    this.#certificates =
      client &&
      certificateSource(
        client,
        settings,
        {
          onChange: (change, asked) => this.#apply(change, 'api', asked),
          isRead: (object) => options.desired.dependents.of([object]).size > 0,
        },
        metrics.api,
        log,
      );
    const { cluster, changes } = options;
    this.#definitions =
      client &&
      new DefinitionVersions({
        api: client,
        onChanged: () => {
          const classes = cluster.ownerKeys().filter((key) => ownerOf(key).kind === 'GatewayClass');
          changes.add(classes, performance.now());
        },
      });
    this.#pemFiles = new PemFiles({
      places: settings.certificates,
      onChange: (secrets) => this.#apply({ upserted: secrets, removed: [] }, 'files'),
    });
    this.#manifests = new ManifestSource({
      places: settings.manifests,
      snapshotDirectory: join(settings.stateDir, 'manifests'),
      onChange: this.#receiver('manifests'),
      onFailure: (error) =>
        log.warn('The manifests have a fault; traffic is not affected', { error: messageOf(error) }),
    });
  }

  /** Unreadable files and objects, duplicate objects. */
  get problems(): readonly Problem[] {
    return [...this.#problems.values()].flat();
  }

  /** The manifests that have the object, the one that counts first. `identity`: `Service default/web`. */
  pathsOf(identity: string): readonly string[] {
    return this.#manifests.pathsOf(identity);
  }

  /** The objects as the next agent finds them. */
  get files(): readonly DiskFile[] {
    return [this.#manifests.file, this.api?.file].filter((file) => file !== undefined);
  }

  /** The state of the objects from which the desired state comes. */
  get objects(): ObjectsState {
    return this.#objects;
  }

  /** Touches nothing. Errors: SETTINGS_INVALID if start() would fail for the same reason. */
  check(): void {
    this.#manifests.check();
  }

  /**
   * Resolves when all objects that are available at the start are in the store, with the origin of the API server's
   * objects. Manifests are served even if no API server can be reached.
   */
  async start(receivers: SourceReceivers): Promise<ReadyBy | undefined> {
    const { settings, log } = this.#options;
    this.#receivers = receivers;
    const why = nothingToServe(settings);
    if (why !== '') log.warn(why);
    this.api?.start();
    this.#pemFiles.start();
    await this.#manifests.start();
    return this.api?.ready;
  }

  /** The objects of the start are translated. */
  areTranslated(): void {
    this.#objects = this.api === undefined ? 'live' : 'kept';
    void this.api?.synced.then(() => {
      this.#objects = 'live';
    });
  }

  /** Whether a Secret of the cluster can be read for its certificate. Reads it from now on. */
  accessToPair(object: `secret ${string}`): Access {
    return this.#certificates?.accessToPair(object) ?? { kind: 'read' };
  }

  /** Whether an object of the cluster can be read for its authorities. Reads it from now on. */
  accessToAuthority(object: ObjectName): Access {
    return this.#certificates?.accessToAuthority(object) ?? { kind: 'read' };
  }

  /** All objects have been read, of the API server too. */
  get areRead(): boolean {
    return this.#areRead;
  }

  /** A field of a Secret with the password of a peer. Reads the Secret from now on. */
  password(field: { readonly name: string; readonly key: string }): ReadPassword {
    return this.#passwords?.read(field) ?? { why: 'without a cluster there are no Secrets' };
  }

  /** Secrets with other names have no password of a peer any more. */
  keepPasswords(names: ReadonlySet<string>): void {
    this.#passwords?.keepOnly(names);
  }

  /** Whether the Pods of a namespace of the cluster can be read. Reads them from now on. */
  accessToPods(namespace: string): Access {
    // With NetworkPolicies all are read in any case, and must not go when no load balancer asks for a namespace any more.
    if (this.#options.settings.enforceNetworkPolicy !== 'off' && this.api !== undefined)
      return { kind: 'read' };
    return this.#certificates?.accessToPods(namespace) ?? { kind: 'pending' };
  }

  /** The versions of the cluster's definitions of the Gateway API. Reads them from now on; undefined if they are not known. */
  definitionVersions(): VersionByDefinition | undefined {
    return this.#definitions?.get();
  }

  /** Where AddressClaims are stored. */
  claimHome(): ClaimHome {
    return claimHome(this.api);
  }

  async close(): Promise<void> {
    this.#definitions?.close();
    await this.#manifests.close();
    await this.api?.close();
    await this.#certificates?.close();
    await this.#passwords?.close();
    this.#pemFiles.close();
  }

  /** Objects with certificates, which only other objects depend on. */
  #apply(
    change: Pick<ObjectsChange, 'upserted' | 'removed'>,
    source: ObjectSource,
    asked: readonly AskedObject[] = [],
  ): void {
    const { cluster, desired, changes, metrics } = this.#options;
    if (source === 'api') metrics.loop.eventReceived(source);
    const { dependencies } = cluster.apply(change, source);
    changes.add(desired.dependents.of(new Set([...dependencies, ...asked])), performance.now());
  }

  #receiver(source: ObjectSource): (change: ObjectsChange) => void {
    const { cluster, desired, changes, problemLog, metrics } = this.#options;
    return (change) => {
      metrics.loop.eventReceived(source);
      if (source === 'api') this.#areRead = true;
      // A source reports the same list unless a problem has changed.
      const { problems } = change;
      const areChanged = problems !== this.#problems.get(source);
      this.#problems.set(source, problems);
      if (areChanged) problemLog.report(source, problems);
      const { owners, dependencies, peersChanged, ...ofAddresses } = cluster.apply(change, source);
      if (areChanged && source === 'api') {
        this.#receivers?.addresses.cannotRead(problems);
        this.#receivers?.onRefused(problems);
      }
      this.#receivers?.addresses.take({ ...ofAddresses, dependencies }, dependencies.has('nodes'));
      if (peersChanged) this.#receivers?.onPeers();
      const changed = new Set([...owners, ...desired.dependents.of(dependencies)]);
      changes.add(changed, performance.now(), change.triggerTime);
    };
  }
}
