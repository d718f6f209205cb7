// `headgate check`: can this host run the agent with these settings? Each finding says what is wrong and what to do.
// Changes nothing.

import { accessSync, constants, existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { agentSocketPath, isAnswered } from '../answer/agent-socket.ts';
import { messageOf } from '../base/errors.ts';
import { formatLogTarget, socketOf } from '../base/log-target.ts';
import { probeBind } from '../haproxy/config/bind-probe.ts';
import { maxConnections, needsOf } from '../haproxy/config/limits.ts';
import { isForHaproxy } from '../haproxy/config/listener-config.ts';
import { capabilitiesOf, haproxyVersion, type Version } from '../haproxy/socket/version.ts';
import { fileLimit } from '../host/file-limit.ts';
import { bad, type Finding, good } from '../host/finding.ts';
import { readSysctl } from '../host/sysctl.ts';
import { pathFault } from '../kubernetes/manifests/file-system.ts';
import type { LoadBalancer } from '../model/load-balancer.ts';
import { conntrackdPreflight } from '../nftables/conntrackd/preflight.ts';
import { syncLink } from '../nftables/conntrackd/sync-link.ts';
import { kernelPreflight } from '../nftables/preflight.ts';
import { kernelListeners } from '../nftables/rules/kernel-listener.ts';
import { pairSettings } from '../pair/pair-settings.ts';
import { readCredentials } from '../pair/peers/credentials.ts';
import { bgpSettings } from '../settings/announce.ts';
import { logTargetFault } from '../settings/connection-log.ts';
import { hostGroup } from '../settings/host-group.ts';
import { nothingToServe, type Settings } from '../settings/settings.ts';
import { translateSettings } from '../translate/translate-settings.ts';
import { movingSources } from '../vips/announcers.ts';
import { birdReadiness } from '../vips/bird/readiness.ts';
import { networkFinding, preflight } from '../vips/keepalived/host/preflight.ts';
import { keepalivedPaths } from '../vips/keepalived/paths.ts';
import { readBackLink } from '../vips/passing/back-link.ts';
import { amphoraFindings } from './check-amphora.ts';
import { clusterFindings } from './check-cluster.ts';
import { keyFindings, keyUrlsOf } from './check-keys.ts';
import { type Command, JSON_FLAG } from './command.ts';
import { print } from './command-line.ts';
import { desiredState, type ReadState } from './desired.ts';
import { bad as badPart, good as goodPart, type Toned, warning as warningPart } from './text.ts';

export const check: Command = {
  name: 'check',
  purpose: 'check settings, versions, rights, limits, ports, the API server and URLs of keys',
  details: [
    'Changes nothing. Each finding that is BAD says what to do; one with "warn" does not keep the agent from running.',
  ],
  flags: JSON_FLAG,
  settings: 'all',
  exits: { 0: 'this host can run the agent', 1: 'it cannot' },
  examples: [
    { line: 'headgate check --config /etc/headgate/headgate.yaml', doc: 'before the first start' },
    {
      line: 'headgate check --manifests examples/manifests',
      doc: 'also whether the ports of the Services are free',
    },
  ],
  run: async (given) => {
    const findings = await findingsOf(given.settings);
    const ok = findings.every((finding) => finding.ok);
    const lines = findings.map((finding) => [partOf(finding), ` ${finding.what}: ${finding.detail}`]);
    print(given, { ok, findings }, lines);
    return ok ? 0 : 1;
  },
};

function partOf({ ok, isWarning }: Finding): Toned {
  if (!ok) return badPart('BAD ');
  return isWarning ? warningPart('warn') : goodPart('ok  ');
}

/** The load balancers of the manifests that can be read. */
type Found = readonly LoadBalancer[];

async function findingsOf(settings: Settings): Promise<readonly Finding[]> {
  const agentRuns = await isAnswered(agentSocketPath(settings.runtimeDir));
  if (settings.amphora !== '') return findingsOfAmphora(settings, agentRuns);
  // Files that cannot be read have a finding of their own.
  const manifests = settings.manifests.filter((path) => pathFault(path) === undefined);
  const state = await desiredState({ ...settings, manifests });
  const loadBalancers = [...state.desired.loadBalancers.values()];
  return [
    good('settings', 'all settings are valid'),
    nodeVersion(),
    ...(await haproxy(settings, loadBalancers)),
    ...[settings.stateDir, settings.runtimeDir].map(writableFolder),
    ...noSource(settings),
    ...settings.manifests.map(manifestPlace),
    ...(await clusterFindings(settings)),
    ...(await keyFindings(settings.jwksUrls, keyUrlsOf(loadBalancers))),
    lowPorts(),
    limits(settings, loadBalancers),
    ...(await pair(settings)),
    await listenPort(settings, agentRuns),
    ...(await network(settings)),
    ...(await bgp(settings)),
    ...(await kernelPath(settings, loadBalancers)),
    ...(await connectionSync(settings)),
    ...(await landing(settings)),
    ...connectionLog(settings, loadBalancers),
    ...(agentRuns || settings.netns !== '' ? [] : await servicePorts(settings, state)),
    good('agent', agentRuns ? 'one runs with this runtimeDir' : 'none runs with this runtimeDir'),
  ];
}

/** Nothing of Kubernetes and of a pair holds for an amphora. */
async function findingsOfAmphora(settings: Settings, agentRuns: boolean): Promise<readonly Finding[]> {
  return [
    good('settings', 'all settings are valid'),
    nodeVersion(),
    ...(await amphoraFindings(settings, agentRuns)),
    ...[settings.stateDir, settings.runtimeDir].map(writableFolder),
    await listenPort(settings, agentRuns),
    good('agent', agentRuns ? 'one runs with this runtimeDir' : 'none runs with this runtimeDir'),
  ];
}

function nodeVersion(): Finding {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > 22 || (major === 22 && minor >= 20)) return good('Node', process.version);
  return bad('Node', `${process.version}: run it with Node 22.20 or newer`);
}

async function haproxy(settings: Settings, found: Found): Promise<readonly Finding[]> {
  const version = await haproxyVersion(settings.haproxy).catch(messageOf);
  if (typeof version === 'string') return [bad('HAProxy', version)];
  return [good('HAProxy', version.text), ...leastConnections(version, settings, found)];
}

/** A HAProxy with this fault stops all traffic if one Service uses the algorithm; only manifests can be checked here. */
function leastConnections(version: Version, settings: Settings, found: Found): readonly Finding[] {
  const { leastConnectionsSafeFrom: safe } = capabilitiesOf(version);
  if (safe === '') return [];
  const user = userOfLeastConnections(settings, found);
  const usage = user === '' ? 'no Service must use it' : `${user} uses it`;
  const danger = `HAProxy ${version.text} can hang when members come back (its issue 3360)`;
  const what = 'least-connections';
  const detail = `${usage}, because ${danger}: install ${safe} or newer, unless its package has the fix`;
  return [{ what, ok: user === '', detail }];
}

/** '' if neither the settings nor a manifest use it. */
function userOfLeastConnections(settings: Settings, found: Found): string {
  if (translateSettings(settings).annotationDefaults.algorithm === 'least-connections')
    return 'the setting "defaults"';
  const user = found.find(({ listeners }) =>
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

function manifestPlace(path: string): Finding {
  const fault = pathFault(path);
  if (fault === undefined) return good(path, 'readable');
  return bad(path, `${messageOf(fault.cause)}: create it, or correct "manifests"`);
}

function isAccessible(path: string, mode: number): boolean {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
}

function lowPorts(): Finding {
  if (process.getuid?.() === 0) return good('rights', 'HAProxy can listen on all ports');
  return good(
    'rights',
    'HAProxy can listen on ports from 1024 on; lower ports need root or CAP_NET_BIND_SERVICE',
  );
}

/** Only the sockets and checks of manifests can be counted here. */
function limits(settings: Settings, found: Found): Finding {
  const files = fileLimit();
  const { value, problem } = maxConnections(settings.maxConnections, files, needsOf(found));
  if (problem !== undefined) return bad('limits', problem);
  return good('limits', `${files} open files allow ${value} connections`);
}

async function pair(settings: Settings): Promise<readonly Finding[]> {
  const what = settings.hosts.length > 0 ? 'credentials of the hosts' : 'credentials of the pair';
  try {
    const hosts = hostGroup(settings)?.hosts ?? [];
    if (hosts.length < 2 && pairSettings(settings) === undefined) return [];
    const { expires } = await readCredentials(settings.pairCredentials);
    return [good(what, `they expire on ${new Date(expires).toISOString().slice(0, 10)}`)];
  } catch (error) {
    return [bad(what, messageOf(error))];
  }
}

async function bgp(settings: Settings): Promise<readonly Finding[]> {
  try {
    const routes = bgpSettings(settings);
    if (routes === undefined) return [];
    const group = hostGroup(settings);
    const hasBack = group !== undefined && group.self.back.length > 0;
    const link = hasBack ? (await readBackLink(settings.netns, group, routes.peers)).findings : [];
    return [...(await birdReadiness(settings)), ...link];
  } catch (error) {
    return [bad('announce', messageOf(error))];
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
async function kernelPath(settings: Settings, found: Found): Promise<readonly Finding[]> {
  const listeners = found.flatMap(kernelListeners);
  // The check of BGP says what is wrong with the hosts.
  const group = await Promise.resolve(settings)
    .then(hostGroup)
    .catch(() => undefined);
  return kernelPreflight(settings, listeners, movingSources(settings, group));
}

async function connectionSync(settings: Settings): Promise<readonly Finding[]> {
  try {
    const link = syncLink(settings);
    return link === undefined ? [] : await conntrackdPreflight(settings, link);
  } catch (error) {
    return [bad('connectionSync', messageOf(error))];
  }
}

/** A move loses no connection without this parameter either, but for one in some hundred thousand on a busy listener. */
async function landing({ landing, netns }: Settings): Promise<readonly Finding[]> {
  if (!landing) return [];
  const what = 'net.ipv4.tcp_migrate_req';
  const value = await readSysctl(netns, what.split('.')).catch(() => '');
  if (value === '1') return [good(what, 'is 1')];
  const reset = 'a connection may be reset when Services leave the landing';
  if (value === '') return [good(what, `this kernel has none; ${reset}`)];
  return [good(what, `is ${value}; ${reset}, and with 1 (sysctl -w ${what}=1) none is`)];
}

/** None if no Service of the manifests, and none by default, has a connection log. */
function connectionLog(settings: Settings, found: Found): readonly Finding[] {
  const listeners = found.flatMap((each) => each.listeners);
  if (settings.connectionLog === 'none' && listeners.every(({ log }) => log === 'none')) return [];
  const what = 'connection log';
  const { connectionLogTarget: target } = settings;
  const fault = logTargetFault(settings);
  if (fault !== '') return [bad(what, fault)];
  if (target.kind === 'file') return [{ ...writableFolder(dirname(target.path)), what }];
  const socket = socketOf(target);
  if (socket !== '' && !existsSync(socket))
    return [bad(what, `there is no socket ${socket}, so that lines are lost: set "connectionLogTarget"`)];
  return [good(what, `HAProxy sends it to ${formatLogTarget(target)}`)];
}

/** Probes every address and port of the manifests' Services; `status` reports those of a running agent. */
async function servicePorts(
  settings: Settings,
  { desired, problems }: ReadState,
): Promise<readonly Finding[]> {
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
