// Reads the Secrets with passwords of BGPPeers from the agents' own namespace, each alone, from the moment at which a peer asks
// for it until none does. Nothing of them goes to a disk. Owns the reflectors.

import { SecretText } from '../../base/secret-text.ts';
import { isMapping } from '../../base/validate.ts';
import type { ApiStreams } from './kubernetes-api.ts';
import type { ParseObject } from './reflected.ts';
import { Reflector } from './reflector.ts';
import type { ReflectorObserver, ReflectorTimes } from './reflector-terms.ts';

export interface PasswordSourceOptions {
  readonly api: ApiStreams;
  readonly namespace: string;
  /** The answers of read() may be others now. */
  readonly onChange: () => void;
  readonly observer?: ReflectorObserver;
  readonly times?: Partial<ReflectorTimes>;
}

interface Fields {
  readonly key: string;
  readonly uid: string;
  /** By key; plain data, because the reflector compares it. */
  readonly texts: Readonly<Record<string, string>>;
}

/** `why`: a sentence's end. */
export type ReadPassword = { readonly text: SecretText } | { readonly why: string };

/** Longer ones are no passwords. */
const MAX_BASE64_CHARACTERS = 256;

export class PasswordSource {
  readonly #options: PasswordSourceOptions;
  /** By the name of the Secret. */
  readonly #followed = new Map<string, Reflector<Fields>>();
  #isClosed = false;

  constructor(options: PasswordSourceOptions) {
    this.#options = options;
  }

  /** A field of a Secret, which is read from now on. */
  read({ name, key }: { readonly name: string; readonly key: string }): ReadPassword {
    const { namespace } = this.#options;
    const reflector = this.#follow(name);
    if (reflector.lack === 'forbidden')
      return {
        why: `the API server does not let this agent's account read it (403): apply deploy/kubernetes/rbac.yaml`,
      };
    if (!reflector.isSynced) return { why: 'it has not been read yet' };
    const [found] = reflector.known.objects();
    if (found === undefined)
      return { why: `there is no Secret of this name in the namespace "${namespace}"` };
    const text = Object.hasOwn(found.texts, key) ? found.texts[key] : undefined;
    return text === undefined ? { why: 'the Secret has no such key' } : { text: new SecretText(text) };
  }

  /** Reads no others any more. */
  keepOnly(names: ReadonlySet<string>): void {
    for (const [name, reflector] of this.#followed) {
      if (names.has(name)) continue;
      this.#followed.delete(name);
      void reflector.close();
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#followed.values()].map((each) => each.close()));
  }

  #follow(name: string): Reflector<Fields> {
    const known = this.#followed.get(name);
    if (known !== undefined) return known;
    const { api, namespace, onChange, observer, times } = this.#options;
    const reflector = new Reflector<Fields>({
      api,
      resource: {
        ...{ kind: 'Secret', apiVersion: 'v1', plural: 'secrets', namespace, isOptional: true, parse },
        ...{ labelSelector: '', fieldSelector: `metadata.name=${name}` },
      },
      receivers: { onChange: () => this.#isClosed || onChange() },
      ...(observer && { observer }),
      ...(times && { times }),
    });
    this.#followed.set(name, reflector);
    if (!this.#isClosed) reflector.start();
    return reflector;
  }
}

const parse: ParseObject<Fields> = ({ metadata, data }) => {
  const { name, uid } = isMapping(metadata) ? metadata : {};
  const texts = Object.entries(isMapping(data) ? data : {}).flatMap(([key, value]) =>
    typeof value === 'string' && value.length <= MAX_BASE64_CHARACTERS
      ? [[key, Buffer.from(value, 'base64').toString('latin1')] as const]
      : [[key, ''] as const],
  );
  return {
    objects: [{ key: String(name), uid: String(uid), texts: Object.fromEntries(texts) }],
    problems: [],
  };
};
