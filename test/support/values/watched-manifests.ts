// A folder of manifests with a source that watches it, for tests. `objects` collects the reports of the source, and `until`
// waits for a report.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { ExecutionContext } from 'ava';
import type { ObjectsChange } from '../../../agent/kubernetes/cluster.ts';
import { ManifestSource, type ManifestSourceOptions } from '../../../agent/kubernetes/manifests/manifests.ts';
import type { KubernetesObject } from '../../../agent/kubernetes/objects.ts';

/** So long that no removal and no rescan happens during a test. */
export const NEVER = 3_600_000;

export interface WatchedManifests {
  readonly source: ManifestSource;
  readonly changes: readonly ObjectsChange[];
  /** `Service default/web` → the object according to all reports so far. */
  readonly objects: ReadonlyMap<string, KubernetesObject>;
  /** The problems of the last report. */
  readonly problems: readonly string[];
  readonly failures: readonly string[];
  /** Resolves at the first report after which `condition` holds, or at once if it holds already. */
  until(condition: () => boolean): Promise<void>;
}

/** A new folder with an empty `manifests` in it, removed after the test. */
export function temporaryFolder(t: ExecutionContext): { readonly root: string; readonly manifests: string } {
  const root = mkdtempSync(join(tmpdir(), 'headgate-manifests-'));
  t.teardown(() => rmSync(root, { recursive: true, force: true }));
  const manifests = join(root, 'manifests');
  mkdirSync(manifests);
  return { root, manifests };
}

/** Writes a file and creates its folders. */
export function write(path: string, content: string | object): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
}

/** Starts a source that is closed after the test. Without other options it removes nothing and never rescans. */
export async function watchManifests(
  t: ExecutionContext,
  directory: string,
  given: Partial<ManifestSourceOptions> = {},
): Promise<WatchedManifests> {
  const changes: ObjectsChange[] = [];
  const objects = new Map<string, KubernetesObject>();
  const failures: string[] = [];
  const waiting = new Set<() => void>();
  const source = new ManifestSource({
    places: [directory],
    snapshotDirectory: undefined,
    lossDelayMs: NEVER,
    folderTimes: { intervalMs: NEVER, unwatchedIntervalMs: NEVER },
    onFailure: (error) => failures.push(error.message),
    ...given,
    onChange(change) {
      changes.push(change);
      for (const { kind, key } of change.removed) objects.delete(`${kind} ${key}`);
      for (const object of change.upserted) objects.set(`${object.kind} ${object.key}`, object);
      for (const check of waiting) check();
    },
  });
  t.teardown(() => source.close());
  await source.start();
  return {
    source,
    changes,
    objects,
    failures,
    get problems() {
      return (changes.at(-1)?.problems ?? []).map(({ message }) => message);
    },
    until(condition) {
      return new Promise((resolve) => {
        const check = () => {
          if (!condition()) return;
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
        check();
      });
    },
  };
}
