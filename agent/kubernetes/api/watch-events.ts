// Parses one line of a watch. Pure.

import { parseJson } from '../../base/parse-json.ts';
import { isMapping } from '../../base/validate.ts';

export type WatchEvent =
  | { readonly kind: 'Changed'; readonly type: 'ADDED' | 'MODIFIED'; readonly object: ApiObject }
  | { readonly kind: 'Deleted'; readonly type: 'DELETED'; readonly object: ApiObject }
  | { readonly kind: 'Bookmark'; readonly type: 'BOOKMARK'; readonly resourceVersion: string }
  /** The API server no longer knows the version of the watch: only a list helps. */
  | { readonly kind: 'Expired' }
  | { readonly kind: 'Failed'; readonly message: string }
  | { readonly kind: 'Malformed' };

/** The fields of every object of the API. */
export interface ApiObject {
  readonly json: Readonly<Record<string, unknown>>;
  /** `namespace/name`, or the name if there is no namespace. */
  readonly key: string;
  readonly uid: string;
  readonly resourceVersion: string;
}

export function parseWatchEvent(line: string): WatchEvent {
  const event = parseJson(line);
  const object = isMapping(event) ? event.object : undefined;
  if (!isMapping(event) || !isMapping(object)) return { kind: 'Malformed' };
  const { type } = event;
  if (type === 'ERROR') return errorOf(object);
  if (type === 'BOOKMARK') {
    const version = isMapping(object.metadata) ? object.metadata.resourceVersion : undefined;
    return typeof version === 'string' && version !== ''
      ? { kind: 'Bookmark', type, resourceVersion: version }
      : { kind: 'Malformed' };
  }
  const found = apiObjectOf(object);
  if (found === undefined) return { kind: 'Malformed' };
  if (type === 'ADDED' || type === 'MODIFIED') return { kind: 'Changed', type, object: found };
  return type === 'DELETED' ? { kind: 'Deleted', type, object: found } : { kind: 'Malformed' };
}

/** undefined if it is not an object of the API. */
export function apiObjectOf(json: unknown): ApiObject | undefined {
  const metadata = isMapping(json) ? json.metadata : undefined;
  if (!isMapping(json) || !isMapping(metadata)) return undefined;
  const { name, namespace, uid, resourceVersion } = metadata;
  if (typeof name !== 'string' || typeof uid !== 'string' || typeof resourceVersion !== 'string')
    return undefined;
  const key = typeof namespace === 'string' && namespace !== '' ? `${namespace}/${name}` : name;
  return { json, key, uid, resourceVersion };
}

/** A metav1.Status. `Too large resource version`: the API server has lost the newer versions. */
function errorOf(status: Readonly<Record<string, unknown>>): WatchEvent {
  const message = typeof status.message === 'string' ? status.message : 'without a message';
  const isLost = status.code === 410 || status.reason === 'Expired' || status.reason === 'Gone';
  return isLost || /too large resource version/i.test(message)
    ? { kind: 'Expired' }
    : { kind: 'Failed', message: `${String(status.code ?? '')} ${message}`.trim().slice(0, 500) };
}

/** Resource versions are numbers that only grow (KEP-5504); other texts cannot be compared. */
export function isOlder(version: string, than: string | undefined): boolean {
  if (than === undefined || !/^\d{1,30}$/.test(version) || !/^\d{1,30}$/.test(than)) return false;
  return BigInt(version) < BigInt(than);
}
