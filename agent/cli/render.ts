// `headgate render --manifests PATH --output DIR`: writes the files that `run` would write, with --model prints the load
// balancers that follow from the manifests, and with --strict checks manifests. Needs no agent.

import { dirname, join } from 'node:path';
import { counted } from '../base/counted.ts';
import { printable } from '../base/quote.ts';
import { yamlText } from '../base/yaml.ts';
import { AclIds } from '../haproxy/config/acl-ids.ts';
import { configText, inFileOrder } from '../haproxy/config/config-text.ts';
import { maxConnections, needsOf } from '../haproxy/config/limits.ts';
import { logWriterText } from '../haproxy/config/log-writer-text.ts';
import { type PagesText, pagesOf, pageTexts } from '../haproxy/config/page-files.ts';
import { renderContext } from '../haproxy/config/render-context.ts';
import { type SharedTables, sharedTables } from '../haproxy/config/shared-tables.ts';
import { tokenKeysOf, tokenKeyTexts } from '../haproxy/config/token-key-files.ts';
import { haproxyPaths } from '../haproxy/paths.ts';
import { routeTexts } from '../haproxy/routes/route-files.ts';
import { tablesOf as rowsOf } from '../haproxy/routes/tables.ts';
import { writeAtomically } from '../host/atomic-file.ts';
import { fileLimit } from '../host/file-limit.ts';
import type { NamedText } from '../host/file-set.ts';
import { makeFolder } from '../host/make-directory.ts';
import type { LoadBalancer } from '../model/load-balancer.ts';
import { conntrackdPaths } from '../nftables/conntrackd/paths.ts';
import { conntrackdText, syncRulesText } from '../nftables/conntrackd/render.ts';
import { syncLink } from '../nftables/conntrackd/sync-link.ts';
import { tableOf } from '../nftables/paths.ts';
import { isForKernel, kernelListener } from '../nftables/rules/kernel-listener.ts';
import { rulesText } from '../nftables/rules/rules-file.ts';
import { pairSettings, tablesAddresses, tablesOfGroup } from '../pair/pair-settings.ts';
import { readCredentials } from '../pair/peers/credentials.ts';
import { hostGroup } from '../settings/host-group.ts';
import type { Settings } from '../settings/settings.ts';
import { movingSources } from '../vips/announcers.ts';
import { renderKeepalived } from '../vips/keepalived/files/render.ts';
import { keepalivedPaths } from '../vips/keepalived/paths.ts';
import { usableVips } from '../vips/usable.ts';
import { type Command, JSON_FLAG } from './command.ts';
import { print, problemLine, usageError } from './command-line.ts';
import { desiredState } from './desired.ts';

export const render: Command = {
  name: 'render',
  purpose: 'write the files that run would write, or check manifests',
  details: [
    'Needs no agent. Each refused object or value is a line on stderr; with --strict it is also a failure, so that the command is a linter of manifests for CI.',
  ],
  flags: {
    output: { placeholder: 'DIR', doc: 'the folder that gets the files; with --strict it may be left out' },
    model: {
      placeholder: '',
      doc: 'print the load balancers with their listeners, routes, pools and members, as YAML',
    },
    strict: { placeholder: '', doc: 'end with 1 if an object or a value of the manifests is refused' },
    ...JSON_FLAG,
  },
  settings: 'all',
  exits: { 0: 'written, or nothing is refused', 1: 'cannot write; with --strict, something is refused' },
  examples: [
    { line: 'headgate render --strict --manifests manifests/', doc: 'checks manifests and writes nothing' },
    { line: 'headgate render --model --manifests manifests/', doc: 'shows what the agent makes of them' },
    {
      line: 'headgate render --manifests manifests/ --output out',
      doc: 'writes out/haproxy/haproxy.cfg and the other files',
    },
  ],
  run: async (given) => {
    const { settings } = given;
    const { output, strict, model } = given.own;
    if (typeof output !== 'string' && strict !== true && model !== true)
      throw usageError(
        'The flag --output DIR is missing: name a folder, print with --model, or check only with --strict',
      );
    const { desired, pages, problems } = await desiredState(settings);
    const loadBalancers = inFileOrder(desired.loadBalancers);
    const files = typeof output === 'string' ? await writeAll(output, loadBalancers, settings, pages) : [];
    for (const problem of problems) console.error(printable(problemLine(problem)));
    if (model === true) {
      print(given, loadBalancers, yamlText(loadBalancers).trimEnd().split('\n'));
      return strict === true && problems.length > 0 ? 1 : 0;
    }
    const written = files.length === 0 ? '' : `Wrote ${files.join(', ')}: `;
    const refused = strict === true ? `, ${counted(problems.length, 'problem')}` : '';
    const summary = { files, loadBalancers: loadBalancers.length, problems };
    print(given, summary, [`${written}${counted(loadBalancers.length, 'load balancer')}${refused}`]);
    return strict === true && problems.length > 0 ? 1 : 0;
  },
};

/** False if there are none. Errors: FILE_WRITE. */
async function writeTexts(texts: Iterable<NamedText> | AsyncIterable<NamedText>): Promise<boolean> {
  let hasWritten = false;
  for await (const { path, text: textOf } of texts) {
    const text = textOf();
    if (text !== undefined) await writeFolder(path, [text]);
    hasWritten ||= text !== undefined;
  }
  return hasWritten;
}

/** Returns the paths of the files. Errors: FILE_WRITE. */
async function writeAll(
  output: string,
  loadBalancers: readonly LoadBalancer[],
  settings: Settings,
  pages: PagesText,
): Promise<readonly string[]> {
  const needs = needsOf(loadBalancers);
  const limit = maxConnections(settings.maxConnections, fileLimit(), needs);
  const paths = haproxyPaths(settings.stateDir, settings.runtimeDir, settings.haproxyAccess);
  const { chunks } = await configText(
    loadBalancers,
    renderContext(settings, paths, limit.value, new AclIds().idOf, {
      sharedTables: await tablesOf(settings, paths.config),
      hasHttp: needs.hasHttp,
      hasTls: needs.hasTls,
      hasRoutes: needs.hasRoutes,
      asksServers: needs.asksServers,
      verifiesTokens: needs.verifiesTokens,
      reportsErrors: needs.reportsErrors,
    }),
  );
  const path = join(output, 'haproxy', 'haproxy.cfg');
  await writeFolder(path, chunks);

  const files = [path];
  const [ofRoutes, ofPages, ofKeys] = ['routes', 'pages', 'keys'].map((each) =>
    join(output, 'haproxy', each),
  ) as [string, string, string];
  if (await writeTexts(routeTexts(loadBalancers, ofRoutes, rowsOf))) files.push(ofRoutes);
  if (await writeTexts(pageTexts(pagesOf(loadBalancers), ofPages, pages))) files.push(ofPages);
  if (await writeTexts(tokenKeyTexts(tokenKeysOf(loadBalancers), ofKeys))) files.push(ofKeys);
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
    const table = tableOf(settings.stateDir);
    const sources = movingSources(settings, hostGroup(settings));
    const fixed = {
      table,
      generation: '0'.repeat(16),
      sources,
      counts: new Map(),
      countsTraffic: settings.kernelTraffic,
      knowsSockets: true,
    };
    await writeFolder(rules, rulesText({ ...fixed, listeners: kernel }));
  }

  if (settings.connectionLogTarget.kind === 'file') {
    const config = join(output, 'connection-log', 'log-writer.cfg');
    files.push(config);
    await writeFolder(config, [logWriterText(paths, settings.haproxyUser, settings.haproxyGroup)]);
  }

  const link = syncLink(settings);
  if (link !== undefined) {
    const own = conntrackdPaths(settings.stateDir, settings.runtimeDir);
    const config = join(output, 'conntrackd', 'conntrackd.conf');
    const rules = join(output, 'conntrackd', 'rules.nft');
    files.push(config, rules);
    await writeFolder(config, [conntrackdText(link, own)]);
    await writeFolder(rules, [syncRulesText(link, own)]);
  }

  return files;
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
  const group = hostGroup(settings);
  const paired = pairSettings(settings);
  const place = group === undefined ? paired && tablesAddresses(paired) : tablesOfGroup(settings, group);
  if (place === undefined) return undefined;
  const { fingerprint } = await readCredentials(settings.pairCredentials);
  return sharedTables(place, fingerprint, configFile);
}
