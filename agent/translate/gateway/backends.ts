// The pools that a rule of a route sends to. A reference that cannot be followed keeps its part of the traffic, which gets an
// error, and is the reason of the route's condition `ResolvedRefs`. Pure.

import type { BackendReference } from '../../kubernetes/gateway/route-objects.ts';
import { poolKey, poolListener } from '../../model/names.ts';
import type { RefusalReason } from '../../model/object-status.ts';
import type { PoolUse } from '../../model/pool-uses.ts';
import type { WeightedBackend } from '../../model/routes.ts';
import { ANNOTATIONS, PREFIX } from '../annotations/table.ts';
import { policyOf } from '../pool/backend-tls.ts';
import { poolProfile, withCertificate } from '../pool/pool-profile.ts';
import type { Reads } from './gateway-view.ts';
import { type Referrer, type ResolvedBackend, resolveBackend } from './references.ts';

/** KEP-3726: WebSocket over TLS. */
const WSS = 'kubernetes.io/wss';

/** Collects what the rules of one route refer to. */
export class BackendReader {
  readonly reads: Reads;
  readonly #from: Referrer;
  readonly #certificate: string | undefined;
  readonly #uses = new Map<string, PoolUse>();
  #fault: RefusalReason | undefined;

  /** `certificate`: the Secret with the certificate that members get. */
  constructor(from: Referrer, certificate: string | undefined, reads: Reads) {
    this.#from = from;
    this.#certificate = certificate;
    this.reads = reads;
  }

  /** The name of the pool's listener; undefined if the reference cannot be followed. */
  pool(reference: Omit<BackendReference, 'weight'>, profile: string): string | undefined {
    const found = resolveBackend(this.#from, reference, 'TCP', this.reads);
    if ('reason' in found) {
      this.#fault ??= found;
      return undefined;
    }
    const { service, port } = found;
    if (this.#needsTls(found, profile)) {
      const message = `The port ${port.port} of Service "${service.key}" has appProtocol "${WSS}", and no BackendTLSPolicy says whom to trust: its members get no TLS`;
      this.#fault ??= { reason: 'UnsupportedProtocol', message };
    }
    const certificate = this.#certificate;
    const whole = certificate === undefined ? profile : withCertificate(certificate, profile);
    const pool = poolKey(service.namespace, service.name, whole);
    const listener = poolListener(pool, port.port);
    this.#uses.set(listener, { pool, port: port.port, certificate });
    return listener;
  }

  #needsTls({ service, port }: ResolvedBackend, profile: string): boolean {
    if (port.appProtocol !== WSS || poolProfile(profile).mode !== 'http') return false;
    const isAnnotated = `${PREFIX}${ANNOTATIONS.memberTls.name}` in service.annotations;
    return !isAnnotated && policyOf(service, port, this.reads.policiesOf(service.key)) === undefined;
  }

  /** Without changes of headers. */
  weighted(references: readonly BackendReference[], profile: string): readonly WeightedBackend[] {
    return references.map((reference) => ({
      pool: this.pool(reference, profile),
      weight: reference.weight,
      requestHeaders: undefined,
      responseHeaders: undefined,
    }));
  }

  /** The first reference that cannot be followed. */
  get fault(): RefusalReason | undefined {
    return this.#fault;
  }

  /** Each once. */
  get uses(): readonly PoolUse[] {
    return [...this.#uses.values()];
  }
}
