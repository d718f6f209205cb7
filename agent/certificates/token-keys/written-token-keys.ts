// The keys that an earlier agent has written beside HAProxy's file: a URL need not answer when the agent starts. Reads files only.

import { isMapping } from '../../base/validate.ts';
import type { TokenKey } from '../../model/load-balancer.ts';
import { writtenFiles } from '../written-files.ts';
import { checkTokenKeys, type TokenKeys } from './token-keys.ts';

/** As haproxy/config/token-key-files.ts names them. */
const SET = /^keys_[0-9a-f]{20}_([0-9a-f]{32})\.json$/;

/** By the name of the set; of several contents the last one that was written counts. */
export function writtenTokenKeys(folder: string): ReadonlyMap<string, TokenKeys> {
  const kept = new Map<string, TokenKeys>();
  for (const { groups, text } of writtenFiles(folder, SET)) {
    const { name, keys } = setOf(text);
    const checked = checkTokenKeys(keys);
    if (typeof checked !== 'string' && checked.fingerprint === groups[0]) kept.set(name, checked);
  }
  return kept;
}

function setOf(text: string): { readonly name: string; readonly keys: readonly TokenKey[] } {
  try {
    const value: unknown = JSON.parse(text);
    if (isMapping(value) && typeof value.name === 'string' && Array.isArray(value.keys))
      return { name: value.name, keys: value.keys.filter(isMapping) as unknown as readonly TokenKey[] };
  } catch {
    // As a file that is not there.
  }
  return { name: '', keys: [] };
}
