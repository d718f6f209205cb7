// The desired state that the agent begins with: everything that was read at the start, translated at once. Where nobody
// says what to serve it waits: what a HAProxy serves already is not taken back because of that.

import type { HaproxyDataplane } from '../haproxy/dataplane.ts';
import type { Log } from '../host/log.ts';
import type { LoopOptions } from '../loop.ts';
import { translateChanged } from '../translate/translate.ts';
import type { Sources } from './sources.ts';

export interface FirstStateOptions
  extends Pick<LoopOptions, 'changes' | 'cluster' | 'model' | 'settings' | 'addresses'> {
  readonly sources: Pick<Sources, 'api' | 'areTranslated'>;
  /** What the sources have been read by. */
  readonly readBy: Awaited<ReturnType<Sources['start']>>;
  readonly haproxy: Pick<HaproxyDataplane, 'runningListeners'>;
  /** Resolves when the agent is to end. */
  readonly stopping: Promise<unknown>;
  readonly log: Log;
}

/** False where the agent ends before anybody has said what to serve: nobody may be told anything then. */
export async function translateFirst(options: FirstStateOptions): Promise<boolean> {
  const { model, sources, readBy, haproxy, stopping, log } = options;
  translateAll(options);
  if (readBy === 'nothing') {
    const known = new Set(
      [...model.loadBalancers.values()].flatMap((each) => each.listeners.map(({ name }) => name)),
    );
    const others = (await haproxy.runningListeners())?.filter((name) => !known.has(name));
    if (others?.length !== 0) {
      log.warn('Neither the API server nor a snapshot says what to serve: HAProxy serves on as it is', {
        listeners: others?.length ?? 'unknown',
      });
      const isEnding = stopping.then(() => true);
      if (await Promise.race([sources.api?.synced.then(() => false), isEnding])) return false;
      translateAll(options);
    }
  }
  sources.areTranslated();
  return true;
}

function translateAll({ changes, cluster, model, settings, addresses }: FirstStateOptions): void {
  const keys = changes.takeAll();
  const dirty = new Set([...keys, ...addresses.assign(keys)]);
  translateChanged(cluster, model, dirty, settings(), addresses.ofPools);
}
