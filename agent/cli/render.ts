// `headgate render --manifests DIR --output DIR`: writes the files that `run` would write. Needs no agent.

import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { writeAtomically } from '../atomic-file.ts';
import { HeadgateError } from '../errors.ts';
import { AclIds } from '../haproxy/acl-ids.ts';
import { configText, inFileOrder } from '../haproxy/config-text.ts';
import { fileLimit, maxConnections, needsOf } from '../haproxy/limits.ts';
import { haproxyPaths } from '../haproxy/process.ts';
import { renderContext } from '../haproxy/render-context.ts';
import { Cluster } from '../kubernetes/cluster.ts';
import { ManifestSource } from '../kubernetes/manifests.ts';
import type { Problem } from '../model.ts';
import { emptyModel, translateChanged, translateSettings } from '../translate.ts';
import { readQuestion } from './arguments.ts';

/** Refused objects are named on stderr, one line each, and do not change the exit status. */
export async function render(argv: readonly string[]): Promise<number> {
  const { settings, own } = readQuestion(argv, { output: 'value' });
  const { output } = own;
  if (typeof output !== 'string')
    throw new HeadgateError('USAGE', 'Say where to write: --output DIR', { retry: 'never' });
  const cluster = new Cluster();
  const model = emptyModel();
  let problems: readonly Problem[] = [];
  const keys = new Set<string>();
  const manifests = new ManifestSource({
    directories: settings.manifests,
    snapshotDirectory: undefined,
    onChange: (change) => {
      problems = change.problems;
      for (const key of cluster.apply(change, 'manifests').keys) keys.add(key);
    },
    onFailure: (error) => console.error(error.message),
  });
  await manifests.start();
  await manifests.close();
  translateChanged(cluster, model, keys, translateSettings(settings));

  const loadBalancers = inFileOrder(model.loadBalancers);
  const limit = maxConnections(settings.maxConnections, fileLimit(), needsOf(loadBalancers));
  const paths = haproxyPaths(settings.stateDir, settings.runtimeDir);
  const { chunks } = await configText(
    loadBalancers,
    renderContext(settings, paths, limit.value, new AclIds().idOf),
  );
  const path = join(output, 'haproxy', 'haproxy.cfg');
  mkdirSync(dirname(path), { recursive: true });
  await writeAtomically(path, chunks);

  const all = [...problems, ...loadBalancers.flatMap((each) => each.problems)];
  for (const { object, message } of all) console.error(`${object}: ${message}`);
  const summary = { files: [path], loadBalancers: loadBalancers.length, problems: all };
  console.log(
    own.json
      ? JSON.stringify(summary, undefined, 2)
      : `Wrote ${path}: ${loadBalancers.length} load balancers`,
  );
  return 0;
}
