// `headgate render --manifests DIR --output DIR`: writes the files that `run` would write. Needs no agent.

import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { writeAtomically } from '../atomic-file.ts';
import { HeadgateError } from '../errors.ts';
import { AclIds } from '../haproxy/config/acl-ids.ts';
import { configText, inFileOrder } from '../haproxy/config/config-text.ts';
import { fileLimit, maxConnections, needsOf } from '../haproxy/config/limits.ts';
import { renderContext } from '../haproxy/config/render-context.ts';
import { haproxyPaths } from '../haproxy/process/process.ts';
import { readQuestion } from './arguments.ts';
import { desiredState } from './desired.ts';

/** Refused objects are named on stderr, one line each, and do not change the exit status. */
export async function render(argv: readonly string[]): Promise<number> {
  const { settings, own } = readQuestion(argv, { output: 'value' });
  const { output } = own;
  if (typeof output !== 'string')
    throw new HeadgateError('USAGE', 'Say where to write: --output DIR', { retry: 'never' });
  const { model, problems } = await desiredState(settings);
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

  for (const { object, message } of problems) console.error(`${object}: ${message}`);
  const summary = { files: [path], loadBalancers: loadBalancers.length, problems };
  console.log(
    own.json
      ? JSON.stringify(summary, undefined, 2)
      : `Wrote ${path}: ${loadBalancers.length} load balancers`,
  );
  return 0;
}
