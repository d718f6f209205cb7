// `headgate check`: can this host run the agent with these settings? Each finding says what is wrong and what to do.
// Reads only: from the API server one object of each kind, as the agent will, and the rights of its account.

import { accessSync, constants, existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { agentSocketPath, isAnswered } from '../answer/agent-socket.ts';
import { HeadgateError, messageOf } from '../base/errors.ts';
import { probeBind } from '../haproxy/config/bind-probe.ts';
import { maxConnections } from '../haproxy/config/limits.ts';
import { isForHaproxy } from '../haproxy/config/listener-config.ts';
import { capabilitiesOf, haproxyVersion, type Version } from '../haproxy/socket/version.ts';
import { fileLimit } from '../host/file-limit.ts';
import { refusalText } from '../kubernetes/api/api-answer.ts';
import type { ApiClient } from '../kubernetes/api/client.ts';
import { KINDS, resourcesOf } from '../kubernetes/api/reflected-kinds.ts';
import { cannot, resourceRequest } from '../kubernetes/api/resource-client.ts';
import { isAllowed, neededRights, rightRequest, rightWords } from '../kubernetes/api/rights.ts';
import { LEASE } from '../kubernetes/writers/lease.ts';
import { isForKernel } from '../nftables/kernel-listener.ts';
import { kernelPreflight } from '../nftables/preflight.ts';
import { pairSettings } from '../pair/pair-settings.ts';
import { readCredentials } from '../pair/peers/credentials.ts';
import { nothingToServe, type Settings } from '../settings/settings.ts';
import { apiClient } from '../sources/cluster-api.ts';
import { translateSettings } from '../translate/translate-settings.ts';
import { keepalivedPaths } from '../vips/keepalived/paths.ts';
import { type Finding, networkFinding, preflight } from '../vips/keepalived/preflight.ts';
import { print, readArguments } from './command-line.ts';
import { desiredState } from './desired.ts';

/** For each request to the API server. */
const API_TIMEOUT_MS = 5_000;

export async function check(argv: readonly string[]): Promise<number> {
  const given = readArguments(argv);
  const { settings } = given;
  const agentRuns = await isAnswered(agentSocketPath(settings.runtimeDir));
  const findings = [
    good('settings', 'all settings are valid'),
    nodeVersion(),
    ...(await haproxy(settings)),
    ...[settings.stateDir, settings.runtimeDir].map(writableFolder),
    ...noSource(settings),
    ...settings.manifests.map(manifestFolder),
    ...(await apiServer(settings)),
    lowPorts(),
    limits(settings),
    ...(await pair(settings)),
    await listenPort(settings, agentRuns),
    ...(await network(settings)),
    ...(await kernelPath(settings)),
    ...(agentRuns || settings.netns !== '' ? [] : await servicePorts(settings)),
    good('agent', agentRuns ? 'one runs with this runtimeDir' : 'none runs with this runtimeDir'),
  ];
  const ok = findings.every((finding) => finding.ok);
  const lines = findings.map(
    (finding) => `${finding.ok ? 'ok  ' : 'BAD '} ${finding.what}: ${finding.detail}`,
  );
  print(given, { ok, findings }, lines);
  return ok ? 0 : 1;
}

function good(what: string, detail: string): Finding {
  return { what, ok: true, detail };
}

function bad(what: string, detail: string): Finding {
  return { what, ok: false, detail };
}

function nodeVersion(): Finding {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > 22 || (major === 22 && minor >= 20)) return good('Node', process.version);
  return bad('Node', `${process.version}: run it with Node 22.20 or newer`);
}

async function haproxy(settings: Settings): Promise<readonly Finding[]> {
  const version = await haproxyVersion(settings.haproxy).catch(messageOf);
  if (typeof version === 'string') return [bad('HAProxy', version)];
  return [good('HAProxy', version.text), ...(await leastConnections(version, settings))];
}

/** A HAProxy with this fault stops all traffic if one Service uses the algorithm; only manifests can be checked here. */
async function leastConnections(version: Version, settings: Settings): Promise<readonly Finding[]> {
  const { leastConnectionsSafeFrom: safe } = capabilitiesOf(version);
  if (safe === '') return [];
  const user = await userOfLeastConnections(settings);
  const usage = user === '' ? 'no Service must use it' : `${user} uses it`;
  const danger = `HAProxy ${version.text} can hang when members come back (its issue 3360)`;
  const what = 'least-connections';
  const detail = `${usage}, because ${danger}: install ${safe} or newer, unless its package has the fix`;
  return [{ what, ok: user === '', detail }];
}

/** '' if neither the settings nor a manifest use it. */
async function userOfLeastConnections(settings: Settings): Promise<string> {
  if (translateSettings(settings).annotationDefaults.algorithm === 'least-connections')
    return 'the setting "defaults"';
  const { desired } = await readableState(settings);
  const user = [...desired.loadBalancers.values()].find(({ listeners }) =>
    listeners.some(({ pool }) => pool.algorithm === 'least-connections'),
  );
  return user === undefined ? '' : `Service ${user.key}`;
}

/** The folder, or its nearest parent that exists, must be writable. */
function writableFolder(path: string): Finding {
  let existing = path;
  while (!existsSync(existing)) existing = dirname(existing);
  if (isAccessible(existing, constants.W_OK | constants.X_OK))
    return good(path, existing === path ? 'writable' : `can be created in ${existing}`);
  const user = process.getuid?.() ?? 0;
  return bad(path, `user ${user} cannot write to ${existing}: chown it, or choose another folder`);
}

function noSource(settings: Settings): readonly Finding[] {
  const fault = nothingToServe(settings);
  return fault === '' ? [] : [bad('sources', fault)];
}

function manifestFolder(path: string): Finding {
  if (isAccessible(path, constants.R_OK | constants.X_OK)) return good(path, 'readable');
  return bad(path, 'this folder does not exist or cannot be read: create it, or correct "manifests"');
}

function isAccessible(path: string, mode: number): boolean {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
}

/** None if the settings name no cluster. Errors: SETTINGS_INVALID. */
async function apiServer(settings: Settings): Promise<readonly Finding[]> {
  const client = apiClient(settings);
  if (client === undefined) return [];
  const { namespaces, serviceSelector } = settings;
  const resources = KINDS.flatMap((kind) => resourcesOf(kind, namespaces, serviceSelector));
  const [listed, lacking] = [new Set<string>(), new Set<string>()];
  const faults: string[] = [];
  try {
    for (const resource of resources) {
      const response = await client.request(resourceRequest(resource, { limit: '1' }, API_TIMEOUT_MS));
      if (response.status === 200) listed.add(resource.plural);
      else if (response.status === 404 && resource.isOptional) lacking.add(resource.plural);
      else faults.push(`${cannot('list', resource)}: ${refusalText(response)}${adviceFor(response.status)}`);
      if (response.status === 401) break;
    }
    if (faults.length === 0) faults.push(...(await missingRights(client, settings, lacking)));
  } catch (error) {
    if (!(error instanceof HeadgateError)) throw error;
    faults.push(messageOf(error));
  } finally {
    client.close();
  }
  if (faults.length > 0) return faults.map((fault) => bad('API server', fault));
  const without = lacking.size === 0 ? '' : `; it does not have ${[...lacking].join(', ')} (deploy/crds)`;
  return [good('API server', `${[...listed].join(', ')} can be listed${without}`)];
}

/** None if the API server does not answer reviews of access. */
async function missingRights(
  client: ApiClient,
  { namespaces, leaseNamespace }: Settings,
  lacking: ReadonlySet<string>,
): Promise<readonly string[]> {
  const lease = { namespace: leaseNamespace, name: LEASE };
  const needed = neededRights({ namespaces, lease, hasPools: lacking.size === 0 });
  const answers = await Promise.all(
    needed.map((right) => client.request(rightRequest(right, API_TIMEOUT_MS))),
  );
  const missing = needed.filter((_, index) => isAllowed(answers[index]?.body) === false);
  if (missing.length === 0) return [];
  return [`Its account may not ${missing.map(rightWords).join(', ')}${adviceFor(403)}`];
}

function adviceFor(status: number): string {
  if (status === 401) return ': correct the credentials';
  return status === 403 ? ': apply deploy/rbac.yaml' : '';
}

function lowPorts(): Finding {
  if (process.getuid?.() === 0) return good('rights', 'HAProxy can listen on all ports');
  return good(
    'rights',
    'HAProxy can listen on ports from 1024 on; lower ports need root or CAP_NET_BIND_SERVICE',
  );
}

function limits({ maxConnections: desired }: Settings): Finding {
  const files = fileLimit();
  const { value, problem } = maxConnections(desired, files, { listeners: 0, checks: 0 });
  if (problem !== undefined) return bad('limits', problem);
  return good('limits', `${files} open files allow ${value} connections`);
}

async function pair(settings: Settings): Promise<readonly Finding[]> {
  const what = 'credentials of the pair';
  try {
    if (pairSettings(settings) === undefined) return [];
    const { expires } = await readCredentials(settings.pairCredentials);
    return [good(what, `they expire on ${new Date(expires).toISOString().slice(0, 10)}`)];
  } catch (error) {
    return [bad(what, messageOf(error))];
  }
}

async function listenPort({ listen }: Settings, agentRuns: boolean): Promise<Finding> {
  const { address, port } = listen;
  const what = `${address} port ${port}`;
  if (port === 0) return good(what, 'the system chooses a free port');
  const fault = await probeBind(address, port, false);
  if (fault === undefined) return good(what, 'free for /metrics');
  return agentRuns ? good(what, 'the running agent uses it') : bad(what, `${fault}: set "listen"`);
}

async function network(settings: Settings): Promise<readonly Finding[]> {
  if (settings.vrrp === undefined) return [await networkFinding(settings.netns)];
  const paths = keepalivedPaths(settings.stateDir, settings.runtimeDir);
  return preflight({ ...settings, vrrp: settings.vrrp }, paths);
}

/** Only manifests can be checked for UDP and SCTP ports here. */
async function kernelPath(settings: Settings): Promise<readonly Finding[]> {
  const { desired } = await readableState(settings);
  const listeners = [...desired.loadBalancers.values()].flatMap((each) => each.listeners.filter(isForKernel));
  return kernelPreflight(settings, new Set(listeners.map(({ family }) => family)));
}

/** Probes every address and port of the manifests' Services; `status` reports those of a running agent. */
async function servicePorts(settings: Settings): Promise<readonly Finding[]> {
  const { desired, problems } = await readableState(settings);
  const ignoreAccess = settings.haproxySupervisor === 'external';
  const findings = problems.map(({ object, message }) => bad(object, message));
  let free = 0;
  for (const { key, listeners } of desired.loadBalancers.values())
    for (const { addresses, port } of listeners.filter(isForHaproxy))
      for (const address of addresses) {
        const fault = await probeBind(address, port, ignoreAccess);
        if (fault === undefined) free++;
        else findings.push(bad(`Service ${key}`, `cannot listen on ${address} port ${port}: ${fault}`));
      }
  return [...findings, good('ports of Services', `HAProxy can listen on ${free}`)];
}

/** The desired state of the manifest folders that can be read; the others have a finding of their own. */
function readableState(settings: Settings): ReturnType<typeof desiredState> {
  return desiredState({
    ...settings,
    manifests: settings.manifests.filter((path) => manifestFolder(path).ok),
  });
}
