// The desired state of a folder of manifests, for commands that work without an agent.

import type { HeadgateError } from '../errors.ts';
import { Cluster } from '../kubernetes/cluster.ts';
import { ManifestSource } from '../kubernetes/manifests.ts';
import type { Problem } from '../model.ts';
import type { Settings } from '../settings.ts';
import { emptyModel, type Model, translateChanged, translateSettings } from '../translate.ts';

/** Reads all manifests once. Errors: SETTINGS_INVALID where a folder is missing. */
export async function desiredState(
  settings: Settings,
): Promise<{ readonly model: Model; readonly problems: readonly Problem[] }> {
  const cluster = new Cluster();
  const model = emptyModel();
  const keys = new Set<string>();
  let problems: readonly Problem[] = [];
  const failures: HeadgateError[] = [];
  const manifests = new ManifestSource({
    directories: settings.manifests,
    snapshotDirectory: undefined,
    onChange: (change) => {
      problems = change.problems;
      for (const key of cluster.apply(change, 'manifests').keys) keys.add(key);
    },
    onFailure: (error) => failures.push(error),
  });
  await manifests.start();
  await manifests.close();
  translateChanged(cluster, model, keys, translateSettings(settings));
  const unread = failures.map(
    ({ message }): Problem => ({ object: 'Manifests', reason: 'InvalidFile', message }),
  );
  const ofServices = [...model.loadBalancers.values()].flatMap((each) => each.problems);
  return { model, problems: [...unread, ...problems, ...ofServices] };
}
