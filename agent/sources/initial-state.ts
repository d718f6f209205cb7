// Translates the desired state that the agent starts with. Without any source of it, it waits: listeners that HAProxy
// serves already must stay.

import type { Continuity } from '../dataplane/continuity.ts';
import type { Flow } from '../flow.ts';
import type { Log } from '../host/log.ts';
import { translateChanged } from '../translate/translate.ts';
import type { Sources } from './sources.ts';

export interface InitialStateOptions {
  readonly flow: Flow;
  readonly sources: Pick<Sources, 'api' | 'areTranslated'>;
  /** As returned by `Sources.start()`. */
  readonly readBy: Awaited<ReturnType<Sources['start']>>;
  readonly dataplane: Pick<Continuity, 'runningListeners'>;
  /** Resolves when the objects of the cluster do not matter any more. */
  readonly unblocked: Promise<unknown>;
  /** Resolves when the agent has to stop. */
  readonly stopping: Promise<unknown>;
  readonly log: Log;
}

/** False if the agent stops before there is a desired state: the dataplane must stay as it is then. */
export async function translateInitialState(options: InitialStateOptions): Promise<boolean> {
  const { flow, sources, readBy, dataplane, unblocked, stopping, log } = options;
  translateAll(flow);
  if (readBy === 'nothing') {
    const known = new Set(
      [...flow.desired.loadBalancers.values()].flatMap((each) => each.listeners.map(({ name }) => name)),
    );
    const others = (await dataplane.runningListeners())?.filter((name) => !known.has(name));
    if (others?.length !== 0) {
      log.warn('No desired state yet (no API server, no snapshot): leaving HAProxy unchanged', {
        listeners: others?.length ?? 'unknown',
      });
      const isEnding = stopping.then(() => true);
      const isRead = Promise.race([sources.api?.synced, unblocked]).then(() => false);
      if (await Promise.race([isRead, isEnding])) return false;
      translateAll(flow);
    }
  }
  sources.areTranslated();
  return true;
}

function translateAll({ changes, desired, translators, addresses }: Flow): void {
  const keys = changes.takeAll();
  translateChanged(desired, translators, new Set([...keys, ...addresses.assign(keys)]));
}
