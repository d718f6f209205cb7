// The findings of `headgate check` on an amphora of Octavia, beside those of every host: what the controller has brought, and what
// its texts need of this machine.

import { readFileSync } from 'node:fs';
import { messageOf } from '../base/errors.ts';
import { probeBind } from '../haproxy/config/bind-probe.ts';
import { haproxyVersion } from '../haproxy/socket/version.ts';
import { fileLimit } from '../host/file-limit.ts';
import { bad, type Finding, good } from '../host/finding.ts';
import { runCommand } from '../host/run-command.ts';
import { readCredentials } from '../octavia/rest/own-certificate.ts';
import { type AmphoraSettings, readAmphoraSettings } from '../octavia/settings/amphora-settings.ts';
import type { Settings } from '../settings/settings.ts';

/** HAProxy needs 2.5 for a connection, and some of its own; Octavia allows a listener 50,000 connections by default. */
const DESCRIPTORS_OF_ONE_LISTENER = 125_100;

/** `agentRuns`: it has the port of the API. */
export async function amphoraFindings(settings: Settings, agentRuns: boolean): Promise<readonly Finding[]> {
  let amphora: AmphoraSettings;
  try {
    amphora = readAmphoraSettings(readFileSync(settings.amphora, 'utf8'), settings.amphora);
  } catch (error) {
    return [bad(settings.amphora, `${messageOf(error)}: Octavia brings it at the first boot`)];
  }
  return [
    good(settings.amphora, `of amphora ${amphora.amphoraId}`),
    await haproxy(amphora),
    certificate(amphora),
    controllers(amphora),
    await restPort(amphora, agentRuns),
    descriptors(),
    rights(),
    ...(await programs(settings, amphora)),
  ];
}

async function haproxy({ haproxy: program }: AmphoraSettings): Promise<Finding> {
  const version = await haproxyVersion(program).catch(messageOf);
  return typeof version === 'string' ? bad('HAProxy', version) : good('HAProxy', version.text);
}

function certificate({ rest }: AmphoraSettings): Finding {
  const what = 'certificate of the API';
  try {
    readCredentials(rest);
    return good(what, `${rest.certificate}, for clients of ${rest.clientAuthority}`);
  } catch (error) {
    return bad(what, messageOf(error));
  }
}

function controllers({ heartbeat }: AmphoraSettings): Finding {
  const what = 'controllers';
  const names = heartbeat.controllers.map(({ host, port }) => `${host} port ${port}`);
  if (names.length > 0) return good(what, `heartbeats go to ${names.join(', ')}`);
  return bad(
    what,
    'there is none, so that Octavia replaces this amphora after a minute: set "controller_ip_port_list"',
  );
}

async function restPort({ rest }: AmphoraSettings, agentRuns: boolean): Promise<Finding> {
  const what = `${rest.address} port ${rest.port}`;
  const fault = rest.port === 0 ? undefined : await probeBind(rest.address, rest.port, false);
  if (fault === undefined) return good(what, "free for the controller's calls");
  return agentRuns ? good(what, 'the running agent uses it') : bad(what, `${fault}: set "bind_port"`);
}

function descriptors(): Finding {
  const limit = fileLimit();
  const needs = `a listener with Octavia's default of 50,000 connections needs ${DESCRIPTORS_OF_ONE_LISTENER}`;
  if (limit >= DESCRIPTORS_OF_ONE_LISTENER) return good('limits', `${limit} open files; ${needs}`);
  return bad(
    'limits',
    `${limit} open files, but ${needs}, and HAProxy does not start without: raise LimitNOFILE`,
  );
}

function rights(): Finding {
  if (process.getuid?.() === 0) return good('rights', 'root can make namespaces and interfaces');
  return bad('rights', 'an amphora makes namespaces and interfaces: run it as root');
}

async function programs(settings: Settings, amphora: AmphoraSettings): Promise<readonly Finding[]> {
  const needed: readonly (readonly [string, readonly string[], string])[] = [
    ['ip', ['-Version'], 'makes the namespace and its interfaces'],
    [settings.nft, ['--version'], 'serves UDP and SCTP'],
    ['perl', ['-e', '1'], "announces VIPs, is keepalived's check of HAProxy, and probes members of UDP"],
    ...(amphora.isActiveStandby ? [[settings.keepalived, ['--version'], 'moves the VIP'] as const] : []),
  ];
  return Promise.all(
    needed.map(async ([program, words, purpose]) => {
      try {
        await runCommand(program, words, { timeout: 5_000 });
        return good(program, purpose);
      } catch (error) {
        return bad(program, `${messageOf(error)}: it ${purpose}; install it`);
      }
    }),
  );
}
