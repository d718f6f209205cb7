// Checks whether this host can synchronise connections: the program, the kernel, the rules, and whether the peer is heard.
// Reads only.

import { sleep } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { bad, type Finding, good } from '../../host/finding.ts';
import { inNamespace } from '../../host/namespace.ts';
import { runCommand } from '../../host/run-command.ts';
import { readSysctl } from '../../host/sysctl.ts';
import type { ConnectionSyncSettings } from './connection-sync.ts';
import { conntrackdPaths } from './paths.ts';
import { conntrackdVersion, packetsReceived } from './process.ts';
import type { SyncLink } from './sync-link.ts';

const TIMEOUT_MS = 5_000;
/** The peer sends something each second. */
const LISTEN_MS = 2_500;
const EVENTS = 'net.netfilter.nf_conntrack_events';

export async function conntrackdPreflight(
  settings: ConnectionSyncSettings,
  link: SyncLink,
): Promise<readonly Finding[]> {
  const { conntrackd, netns } = settings;
  const program = await conntrackdVersion(conntrackd).then(
    (version) => good('conntrackd', version),
    (error) => bad('conntrackd', messageOf(error)),
  );
  return [program, await kernel(netns), await events(netns), await peer(settings, link)];
}

/** The command reads the table of connections in the way that conntrackd does. */
async function kernel(netns: string): Promise<Finding> {
  const [program, words] = inNamespace(netns, 'conntrack', ['-C']);
  const why = await runCommand(program, words, { timeout: TIMEOUT_MS }).then(
    ({ exitCode, stderr }) => (exitCode === 0 ? '' : stderr.trim().slice(0, 200)),
    () => 'the program conntrack is missing: install it',
  );
  const what = 'ctnetlink';
  if (why === '') return good(what, 'the table of connections can be read');
  return bad(what, `the table of connections cannot be read: ${why}`);
}

async function events(netns: string): Promise<Finding> {
  const value = await readSysctl(netns, EVENTS.split('.')).catch(() => '');
  if (value !== '0') return good(EVENTS, value === '' ? 'not set yet' : `is ${value}`);
  const detail = `is 0, so that conntrackd gets no flows: set it to 2 (sysctl -w ${EVENTS}=2)`;
  return bad(EVENTS, detail);
}

async function peer(settings: ConnectionSyncSettings, { peer: address, port }: SyncLink): Promise<Finding> {
  const what = `conntrackd of ${address} port ${port}`;
  const received = (): Promise<number | undefined> =>
    packetsReceived(settings.conntrackd, conntrackdPaths(settings.stateDir, settings.runtimeDir));
  const before = await received();
  if (before === undefined)
    return good(what, 'can be checked while the agent and conntrackd run on both hosts');
  await sleep(LISTEN_MS);
  if ((await received()) !== before) return good(what, 'sends to this host');
  const detail = `sends nothing to this host: check that it runs with "connectionSync", and that UDP port ${port} is open between the two`;
  return bad(what, detail);
}
