// The versions of the cluster's definitions of the Gateway API: an annotation of each CustomResourceDefinition. Read when they
// are asked for, and then again in rounds, because an upgrade of the definitions changes no object that the agent follows.
// Owns the round; uses the network only through KubernetesApi.

import { type Clock, systemClock } from '../../base/clock.ts';
import { Rounds } from '../../base/rounds.ts';
import { sameValue } from '../../base/same-value.ts';
import { isMapping } from '../../base/validate.ts';
import type { KubernetesApi } from './kubernetes-api.ts';
import { gatewayDefinitions } from './reflected-kinds.ts';

export interface DefinitionVersionsOptions {
  readonly api: KubernetesApi;
  readonly onChanged: () => void;
  readonly clock?: Clock;
}

/** `gateways.gateway.networking.k8s.io` → `v1.6.3`; '' without the annotation. */
export type VersionByDefinition = Readonly<Record<string, string>>;

const ROUND_MS = 5 * 60_000;
const ANNOTATION = 'gateway.networking.k8s.io/bundle-version';
/** A definition itself has hundreds of kilobytes. */
const METADATA_ONLY = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1';

export class DefinitionVersions {
  readonly #options: DefinitionVersionsOptions;
  readonly #rounds: Rounds;
  #hasBegun = false;
  #isClosed = false;
  #found: VersionByDefinition | undefined;

  constructor(options: DefinitionVersionsOptions) {
    this.#options = options;
    this.#rounds = new Rounds({
      intervalMs: () => ROUND_MS,
      work: () => this.#read(),
      onFailed: () => undefined,
      clock: options.clock ?? systemClock,
    });
  }

  /** Reads them from now on. undefined: they are not read yet, or the agent's account must not read them. */
  get(): VersionByDefinition | undefined {
    if (!this.#hasBegun && !this.#isClosed) {
      this.#hasBegun = true;
      this.#rounds.start();
      void this.#rounds.now();
    }
    return this.#found;
  }

  close(): void {
    this.#isClosed = true;
    this.#rounds.close();
  }

  async #read(): Promise<void> {
    const found: Record<string, string> = {};
    for (const name of gatewayDefinitions()) {
      const { status, body } = await this.#options.api.request({
        method: 'GET',
        path: `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${name}`,
        accept: METADATA_ONLY,
      });
      if (status === 200) found[name] = versionOf(body);
      else if (status === 403) return this.#set(undefined);
      else if (status !== 404) return;
    }
    this.#set(found);
  }

  #set(found: VersionByDefinition | undefined): void {
    if (this.#isClosed || sameValue(found, this.#found)) return;
    this.#found = found;
    this.#options.onChanged();
  }
}

function versionOf(json: unknown): string {
  const metadata = isMapping(json) && isMapping(json.metadata) ? json.metadata : {};
  const version = isMapping(metadata.annotations) ? metadata.annotations[ANNOTATION] : undefined;
  return typeof version === 'string' ? version : '';
}
