// `headgate render --manifests DIR --output DIR`: writes the files that `run` would write. Needs no agent.

import { dirname, join } from 'node:path';
import { printable } from '../base/quote.ts';
import { AclIds } from '../haproxy/config/acl-ids.ts';
import { configText, inFileOrder } from '../haproxy/config/config-text.ts';
import { maxConnections, needsOf } from '../haproxy/config/limits.ts';
import { renderContext } from '../haproxy/config/render-context.ts';
import { type SharedTables, sharedTables } from '../haproxy/config/shared-tables.ts';
import { haproxyPaths } from '../haproxy/paths.ts';
import { writeAtomically } from '../host/atomic-file.ts';
import { fileLimit } from '../host/file-limit.ts';
import { makeFolder } from '../host/make-directory.ts';
import type { LoadBalancer } from '../model/load-balancer.ts';
import { isForKernel, kernelListener } from '../nftables/kernel-listener.ts';
import { tableOf } from '../nftables/paths.ts';
import { rulesText } from '../nftables/rules-file.ts';
import { pairSettings, tablesPlace } from '../pair/pair-settings.ts';
import { readCredentials } from '../pair/peers/credentials.ts';
import type { Settings } from '../settings/settings.ts';
import { keepalivedPaths } from '../vips/keepalived/paths.ts';
import { renderKeepalived } from '../vips/keepalived/render.ts';
import { usableVips } from '../vips/usable.ts';
import { anchorOf } from '../vips/vrrp.ts';
import { print, problemLine, readArguments, usageError } from './command-line.ts';
import { desiredState } from './desired.ts';

/** Names each refused object in a line on stderr; refused objects do not change the exit status. */
export async function render(argv: readonly string[]): Promise<number> {
  const given = readArguments(argv, { output: 'value' });
  const { settings } = given;
  const { output } = given.own;
  if (typeof output !== 'string') throw usageError('The flag --output DIR is missing');
  const { desired, problems } = await desiredState(settings);
  const loadBalancers = inFileOrder(desired.loadBalancers);
  const needs = needsOf(loadBalancers);
  const limit = maxConnections(settings.maxConnections, fileLimit(), needs);
  const paths = haproxyPaths(settings.stateDir, settings.runtimeDir, settings.haproxyAccess);
  const { chunks } = await configText(
    loadBalancers,
    renderContext(settings, paths, limit.value, new AclIds().idOf, {
      sharedTables: await tablesOf(settings, paths.config),
      hasHttp: needs.hasHttp,
    }),
  );
  const path = join(output, 'haproxy', 'haproxy.cfg');
  await writeFolder(path, chunks);

  const files = [path];
  if (settings.vrrp !== undefined) {
    const own = keepalivedPaths(settings.stateDir, settings.runtimeDir);
    const { usable } = usableVips(vipsOf(loadBalancers), settings.vrrp, [], new Set());
    const keepalived = join(output, 'keepalived', 'keepalived.conf');
    files.push(keepalived);
    await writeFolder(keepalived, [renderKeepalived(settings.vrrp, own, usable)]);
  }

  const kernel = loadBalancers.flatMap(({ listeners }) => listeners.filter(isForKernel).map(kernelListener));
  if (kernel.length > 0) {
    const rules = join(output, 'nftables', 'headgate.nft');
    files.push(rules);
    const sourceOf = (vip: string): string => anchorOf(vip, settings.vrrp);
    const anchors = settings.vrrp?.instances.flatMap((each) => each.anchors) ?? [];
    const fixed = {
      table: tableOf(settings.stateDir),
      generation: '0'.repeat(16),
      anchors,
      counts: new Map(),
    };
    await writeFolder(rules, rulesText({ ...fixed, listeners: kernel, sourceOf }));
  }

  for (const problem of problems) console.error(printable(problemLine(problem)));
  const summary = { files, loadBalancers: loadBalancers.length, problems };
  print(given, summary, [`Wrote ${files.join(', ')}: ${loadBalancers.length} load balancers`]);
  return 0;
}

async function writeFolder(path: string, chunks: Parameters<typeof writeAtomically>[1]): Promise<void> {
  await makeFolder(dirname(path), 0o777);
  await writeAtomically(path, chunks);
}

function vipsOf(loadBalancers: readonly LoadBalancer[]): ReadonlySet<string> {
  return new Set(loadBalancers.flatMap(({ vips }) => vips.map(({ address }) => address)));
}

/** Errors: PAIR_CREDENTIALS; the names of the files contain the credentials' fingerprint. */
async function tablesOf(settings: Settings, configFile: string): Promise<SharedTables | undefined> {
  const paired = pairSettings(settings);
  const place = paired && tablesPlace(paired);
  if (place === undefined) return undefined;
  const { fingerprint } = await readCredentials(settings.pairCredentials);
  return sharedTables(place, fingerprint, configFile);
}
