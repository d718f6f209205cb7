// The public keys of a listener's tokens: the lines of HAProxy's file that verify with them, and their files in the state directory,
// because HAProxy refuses its whole file if one is missing, also after a reboot without the agent. HAProxy 2.6 reads keys only when it
// boots, so that another key is a reload. Files are named by their content. Pure.
// Why: docs/design/decisions/0106-token-keys-reload.md

import { join } from 'node:path';
import type { View } from '../../base/template.ts';
import type { NamedText } from '../../host/file-set.ts';
import type { Listener, LoadBalancer, TokenKey, TokenKeySet } from '../../model/load-balancer.ts';
import { digest, token } from '../routes/encode.ts';
import { keySetId } from '../routes/key-set-id.ts';

/** What the rules of routes know of keys: the sets with the names of their keys, and each key once. */
export function tokenKeyViews({ tokenKeys: all = [] }: Pick<Listener, 'tokenKeys'>, folder: string): View {
  const tokenKeys = all.filter(({ keys }) => keys.length > 0);
  const keys = new Map(tokenKeys.flatMap(({ keys }) => keys.map((key) => [key.id, key] as const)));
  return {
    verifiesTokens: tokenKeys.length > 0,
    keySets: tokenKeys.map(({ name, keys }) => ({ set: keySetId(name), keys: keys.map(keyText).join(';') })),
    tokenKeys: [...keys.values()].map((key) => ({
      id: key.id,
      algorithm: key.algorithm,
      file: keyFile(folder, key),
    })),
  };
}

/** As templates/haproxy/jwt.lua reads it. */
function keyText({ kid, algorithm, id }: TokenKey): string {
  return `${token(kid)}|${algorithm}|${id}`;
}

function keyFile(folder: string, { id }: TokenKey): string {
  return join(folder, `${id}.pem`);
}

/** The keys, and the sets for the next agent (certificates/token-keys/written-token-keys.ts). */
export function* tokenKeyTexts(
  sets: readonly TokenKeySet[],
  folder: string,
): Generator<NamedText, void, void> {
  for (const { name, fingerprint, keys } of sets) {
    if (keys.length === 0) continue;
    for (const key of keys) yield { path: keyFile(folder, key), id: key.id, text: () => key.pem };
    const path = join(folder, `keys_${digest(name, 20)}_${fingerprint}.json`);
    yield { path, id: fingerprint, text: () => JSON.stringify({ name, keys }) };
  }
}

export function tokenKeysOf(loadBalancers: Iterable<LoadBalancer>): readonly TokenKeySet[] {
  return [...loadBalancers].flatMap(({ listeners }) => listeners.flatMap(({ tokenKeys = [] }) => tokenKeys));
}
