// `headgate check`: whether this host can run the agent with these settings, and what to do where it cannot.

import { accessSync, constants, existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { agentSocketPath, askAgent } from '../answer/agent-socket.ts';
import { messageOf } from '../base/errors.ts';
import { probeBind } from '../haproxy/config/bind-probe.ts';
import { fileLimit, maxConnections } from '../haproxy/config/limits.ts';
import { isForHaproxy } from '../haproxy/config/listener-config.ts';
import { capabilitiesOf, haproxyVersion, type Version } from '../haproxy/socket/version.ts';
import { pairSettings } from '../pair/pair-settings.ts';
import { readCredentials } from '../pair/peers/credentials.ts';
import { nothingToServe, type Settings } from '../settings/settings.ts';
import { translateSettings } from '../translate/translate-settings.ts';
import { keepalivedPaths } from '../vips/keepalived/paths.ts';
import { preflight } from '../vips/keepalived/preflight.ts';
import { readQuestion } from './arguments.ts';
import { checkApi } from './check-api.ts';
import { desiredState } from './desired.ts';
import type { Finding } from './finding.ts';

export async function check(argv: readonly string[]): Promise<number> {
  const { settings, own } = readQuestion(argv);
  const agentRuns = await askAgent(agentSocketPath(settings.runtimeDir), 'ping').then(
    () => true,
    () => false,
  );
  const findings = [
    { what: 'settings', ok: true, detail: 'every setting can be used' },
    nodeVersion(),
    ...(await haproxy(settings)),
    ...[settings.stateDir, settings.runtimeDir].map(folder),
    ...noSource(settings),
    ...settings.manifests.map(manifests),
    ...(await checkApi(settings)),
    lowPorts(),
    limits(settings),
    ...(await pair(settings)),
    await listenPort(settings, agentRuns),
    ...(await vrrp(settings)),
    ...(agentRuns || settings.netns !== '' ? [] : await servicePorts(settings)),
    {
      what: 'agent',
      ok: true,
      detail: agentRuns ? 'one runs with this runtimeDir' : 'none runs with this runtimeDir',
    },
  ];
  if (own.json) console.log(JSON.stringify({ ok: findings.every(({ ok }) => ok), findings }, undefined, 2));
  else for (const { what, ok, detail } of findings) console.log(`${ok ? 'ok  ' : 'BAD '} ${what}: ${detail}`);
  return findings.every(({ ok }) => ok) ? 0 : 1;
}

function nodeVersion(): Finding {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const ok = major > 22 || (major === 22 && minor >= 20);
  return { what: 'Node', ok, detail: `${process.version}${ok ? '' : ': run it with Node 22.20 or newer'}` };
}

async function haproxy(settings: Settings): Promise<readonly Finding[]> {
  const what = 'HAProxy';
  const version = await haproxyVersion(settings.haproxy).catch(messageOf);
  if (typeof version === 'string') return [{ what, ok: false, detail: version }];
  return [{ what, ok: true, detail: version.text }, ...(await leastConnections(version, settings))];
}

/** One Service that asks for it can stop the traffic of all; what those of a cluster ask for is not known here. */
async function leastConnections(version: Version, settings: Settings): Promise<readonly Finding[]> {
  const { leastConnectionsSafeFrom: safe } = capabilitiesOf(version);
  if (safe === '') return [];
  const asking = await whoAsksForLeastConnections(settings);
  const who = asking === '' ? 'no Service must ask for it' : `${asking} asks for it`;
  const danger = `HAProxy ${version.text} can hang when members come back (its issue 3360)`;
  return [
    {
      what: 'least-connections',
      ok: asking === '',
      detail: `${who}, because ${danger}: replace it with ${safe} or newer, unless its package has this mended`,
    },
  ];
}

/** '' where nobody does. */
async function whoAsksForLeastConnections(settings: Settings): Promise<string> {
  if (translateSettings(settings).annotationDefaults.algorithm === 'least-connections')
    return 'the setting "defaults"';
  const { desired } = await desiredState({ ...settings, manifests: readable(settings) });
  const asking = [...desired.loadBalancers.values()].find(({ listeners }) =>
    listeners.some(({ pool }) => pool.algorithm === 'least-connections'),
  );
  return asking === undefined ? '' : `Service ${asking.key}`;
}

/** It, or the nearest folder above that exists, must be writable. */
function folder(path: string): Finding {
  let existing = path;
  while (!existsSync(existing)) existing = dirname(existing);
  try {
    accessSync(existing, constants.W_OK | constants.X_OK);
    return { what: path, ok: true, detail: existing === path ? 'writable' : `can be made in ${existing}` };
  } catch {
    const user = process.getuid?.() ?? 0;
    return {
      what: path,
      ok: false,
      detail: `user ${user} cannot write to ${existing}: chown it, or choose another folder`,
    };
  }
}

function noSource(settings: Settings): readonly Finding[] {
  const detail = nothingToServe(settings);
  return detail === '' ? [] : [{ what: 'sources', ok: false, detail }];
}

function manifests(path: string): Finding {
  try {
    accessSync(path, constants.R_OK | constants.X_OK);
    return { what: path, ok: true, detail: 'readable' };
  } catch {
    return {
      what: path,
      ok: false,
      detail: 'there is no such folder that can be read: make it, or correct "manifests"',
    };
  }
}

function readable(settings: Settings): readonly string[] {
  return settings.manifests.filter((path) => manifests(path).ok);
}

function lowPorts(): Finding {
  const isRoot = process.getuid?.() === 0;
  const detail = isRoot
    ? 'all ports can be listened on'
    : 'ports from 1024 on can be listened on; lower ones need root or CAP_NET_BIND_SERVICE';
  return { what: 'rights', ok: true, detail };
}

function limits({ maxConnections: wanted }: Settings): Finding {
  const files = fileLimit();
  const { value, problem } = maxConnections(wanted, files, { listeners: 0, checks: 0 });
  return {
    what: 'limits',
    ok: problem === undefined,
    detail: problem ?? `${files} open files allow ${value} connections`,
  };
}

async function vrrp(settings: Settings): Promise<readonly Finding[]> {
  if (settings.vrrp === undefined) return [];
  const paths = keepalivedPaths(settings.stateDir, settings.runtimeDir);
  return preflight({ ...settings, vrrp: settings.vrrp }, paths);
}

async function listenPort(
  { listen: { address: host, port } }: Settings,
  agentRuns: boolean,
): Promise<Finding> {
  const what = `${host} port ${port}`;
  if (port === 0) return { what, ok: true, detail: 'a free port is taken' };
  const reason = await probeBind(host, port, false);
  if (reason === undefined) return { what, ok: true, detail: 'free for /metrics' };
  return {
    what,
    ok: agentRuns,
    detail: agentRuns ? 'in use, by the agent that runs' : `${reason}: set "listen"`,
  };
}

/** Every address and port that a Service asks for; a running agent says this in `status` instead. */
async function servicePorts(settings: Settings): Promise<readonly Finding[]> {
  const { desired, problems } = await desiredState({ ...settings, manifests: readable(settings) });
  const ignoreAccess = settings.haproxySupervisor === 'external';
  const findings: Finding[] = problems.map(({ object, message }) => ({
    what: object,
    ok: false,
    detail: message,
  }));
  let free = 0;
  for (const { key, listeners } of desired.loadBalancers.values()) {
    for (const listener of listeners.filter(isForHaproxy)) {
      for (const address of listener.addresses) {
        const reason = await probeBind(address, listener.port, ignoreAccess);
        if (reason === undefined) free++;
        else
          findings.push({
            what: `Service ${key}`,
            ok: false,
            detail: `cannot listen on ${address} port ${listener.port}: ${reason}`,
          });
      }
    }
  }
  return [...findings, { what: 'ports of Services', ok: true, detail: `${free} can be listened on` }];
}

async function pair(settings: Settings): Promise<readonly Finding[]> {
  const what = 'credentials of the pair';
  try {
    if (pairSettings(settings) === undefined) return [];
    const { expires } = await readCredentials(settings.pairCredentials);
    return [{ what, ok: true, detail: `they end on ${new Date(expires).toISOString().slice(0, 10)}` }];
  } catch (error) {
    return [{ what, ok: false, detail: messageOf(error) }];
  }
}
