// Reads from the API server what few load balancers ask for, from the moment at which one does: the Secrets of type
// `kubernetes.io/tls` of a namespace, single Secrets and ConfigMaps with authorities, and the Pods of a namespace. Nothing of
// them goes to a disk.
// Owns the reflectors, and the round that ends those whose objects no load balancer asks for any more.

import { type Clock, systemClock } from '../../base/clock.ts';
import { Rounds } from '../../base/rounds.ts';
import type { ObjectName } from '../../certificates/certificates.ts';
import type { Access } from '../../certificates/last-good.ts';
import { type ConfigMap, type Secret, TLS_TYPE } from '../certificate-objects.ts';
import type { ObjectRef, ObjectsChange } from '../cluster.ts';
import type { Pod } from '../objects.ts';
import { parseObject } from '../parse-object.ts';
import type { ApiStreams } from './kubernetes-api.ts';
import type { ParseObject } from './reflected.ts';
import { Reflector } from './reflector.ts';
import type { ReflectorObserver, ReflectorTimes } from './reflector-terms.ts';

/** What a load balancer asks for: an object, or all Pods of a namespace. */
export type AskedObject = ObjectName | `pods ${string}`;

export interface CertificateSourceOptions {
  readonly api: ApiStreams;
  /** Namespaces whose Secrets and ConfigMaps may be read; empty: all. */
  readonly namespaces: readonly string[];
  /** `asked`: what may have another answer of access() now. */
  readonly onChange: (
    change: Pick<ObjectsChange, 'upserted' | 'removed'>,
    asked: readonly AskedObject[],
  ) => void;
  /** True if a load balancer asks for it. */
  readonly isRead: (object: AskedObject) => boolean;
  readonly clock?: Clock;
  readonly observer?: ReflectorObserver;
  readonly times?: Partial<ReflectorTimes>;
}

type CertificateObject = Secret | ConfigMap | Pod;

interface Request {
  readonly kind: CertificateObject['kind'];
  readonly plural: string;
  readonly namespace: string;
  readonly fieldSelector: string;
}

interface Followed {
  readonly reflector: Reflector<CertificateObject>;
  /** What load balancers have asked for. */
  readonly names: Set<AskedObject>;
  /** What was asked for while it could not be answered. */
  readonly waiting: Set<AskedObject>;
}

/** From the end of use of an object until it is read no longer. */
const ROUND_MS = 30_000;

export class CertificateSource {
  readonly #options: CertificateSourceOptions;
  /** By request, as text. */
  readonly #followed = new Map<string, Followed>();
  readonly #rounds: Rounds;
  #isClosed = false;

  constructor(options: CertificateSourceOptions) {
    this.#options = options;
    this.#rounds = new Rounds({
      intervalMs: () => ROUND_MS,
      work: () => this.#release(),
      onFailed: () => undefined,
      clock: options.clock ?? systemClock,
    });
    this.#rounds.start();
  }

  /** A Secret with a certificate and key; all of its namespace are read from now on. */
  accessToPair(asked: `secret ${string}`): Access {
    return this.#access(asked, `type=${TLS_TYPE}`);
  }

  /** A Secret or ConfigMap with authorities; it alone is read from now on. */
  accessToAuthority(asked: ObjectName): Access {
    return this.#access(asked, `metadata.name=${asked.slice(asked.indexOf('/') + 1)}`);
  }

  /** The Pods of a namespace: all of them are read from now on. */
  accessToPods(namespace: string): Access {
    const request = { kind: 'Pod', plural: 'pods', namespace, fieldSelector: '' } as const;
    const allow = 'apply deploy/egress/';
    return this.#answer(request, `pods ${namespace}`, allow);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#rounds.close();
    await Promise.all([...this.#followed.values()].map(({ reflector }) => reflector.close()));
  }

  #access(asked: ObjectName, fieldSelector: string): Access {
    const [, kindWord = '', namespace = ''] = /^(\w+) ([^/]+)\//.exec(asked) ?? [];
    const { namespaces } = this.#options;
    if (namespaces.length > 0 && !namespaces.includes(namespace))
      return denied(`the setting secretNamespaces does not have namespace "${namespace}"`);
    const isSecret = kindWord === 'secret';
    const plural = isSecret ? 'secrets' : 'configmaps';
    const request = { kind: isSecret ? 'Secret' : 'ConfigMap', plural, namespace, fieldSelector } as const;
    return this.#answer(request, asked, 'apply deploy/tls/');
  }

  /** `remedy`: what gives the right, as the end of a sentence. */
  #answer(request: Request, asked: AskedObject, remedy: string): Access {
    const followed = this.#follow(request);
    const { plural, namespace } = request;
    const { reflector } = followed;
    followed.names.add(asked);
    if (reflector.isSynced && reflector.lack === 'none') return { kind: 'read' };
    followed.waiting.add(asked);
    if (!reflector.isSynced) return { kind: 'pending' };
    return denied(
      `the API server does not let this agent's account list ${plural} of namespace "${namespace}" (403): ${remedy}`,
    );
  }

  #follow(request: Request): Followed {
    const key = JSON.stringify(request);
    const known = this.#followed.get(key);
    if (known !== undefined) return known;
    const { api, onChange, observer, times } = this.#options;
    const waiting = new Set<AskedObject>();
    const reflector = new Reflector<CertificateObject>({
      api,
      resource: { ...request, apiVersion: 'v1', labelSelector: '', isOptional: true, parse },
      receivers: {
        onChange: ({ upserted, removed }) => {
          const asked = [...waiting];
          waiting.clear();
          if (!this.#isClosed) onChange({ upserted, removed: removed.map(refOf) }, asked);
        },
      },
      ...(observer && { observer }),
      ...(times && { times }),
    });
    const followed = { reflector, names: new Set<AskedObject>(), waiting };
    this.#followed.set(key, followed);
    if (!this.#isClosed) reflector.start();
    return followed;
  }

  /** Ends reflectors, and removes their objects. */
  async #release(): Promise<void> {
    const { isRead, onChange } = this.#options;
    for (const [key, { reflector, names }] of [...this.#followed]) {
      for (const name of names) if (!isRead(name)) names.delete(name);
      if (names.size > 0) continue;
      this.#followed.delete(key);
      const objects = [...reflector.known.objects()].filter((object) => !this.#isKnown(object));
      await reflector.close();
      if (!this.#isClosed) onChange({ upserted: [], removed: objects.map(refOf) }, []);
    }
  }

  /** A Secret can be read for its certificate and for its authorities. */
  #isKnown({ kind, key }: CertificateObject): boolean {
    const all = [...this.#followed.values()].map(({ reflector }) => reflector);
    return all.some((each) => each.status().kind === kind && each.known.uidOf(key) !== undefined);
  }
}

function refOf({ kind, key }: CertificateObject): ObjectRef {
  return { kind, key };
}

function denied(why: string): Access {
  return { kind: 'denied', why };
}

const parse: ParseObject<CertificateObject> = (json) => {
  const { objects, problems } = parseObject(json, '');
  return {
    objects: objects.filter((object) =>
      ['Secret', 'ConfigMap', 'Pod'].includes(object.kind),
    ) as CertificateObject[],
    problems,
  };
};
