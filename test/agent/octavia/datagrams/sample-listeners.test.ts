// The samples of Octavia's own tests; its agent is the judge of addresses and ids.

import { fileURLToPath } from 'node:url';
import ava from 'ava';
import { runCommand } from '../../../../agent/host/run-command.ts';
import { datagramBalancer } from '../../../../agent/octavia/datagrams/datagram-balancer.ts';
import { type DatagramText, readDatagramText } from '../../../../agent/octavia/datagrams/datagram-text.ts';
import { requires } from '../../../support/basics/requirements.ts';

const test = requires(ava, { programs: ['octavia-worker'] });

const PROGRAM = fileURLToPath(new URL('../../../support/octavia/sample-listeners.py', import.meta.url));

interface Read {
  readonly Listener?: { readonly id: string; readonly ipports: readonly string[] };
  readonly Pool?: { readonly id: string };
  readonly Members?: readonly { readonly id: string; readonly ipport: string | null }[];
}

interface Sample {
  readonly name: string;
  readonly text: string;
  /** null: the listener is disabled. */
  readonly reference: Read | null;
}

test("readDatagramText() reads the samples of Octavia's tests as its agent does", async (t) => {
  const { stdout, stderr } = await runCommand('/usr/bin/python3', [PROGRAM], { timeout: 60_000 });
  t.not(stdout, '', stderr);
  const samples = JSON.parse(stdout) as readonly Sample[];
  t.true(samples.length >= 18);
  for (const { name, text, reference } of samples) {
    const read = readDatagramText(text);
    t.deepEqual(summary(read), reference, name);
    t.is(datagramBalancer(read).listeners.length, reference?.Listener === undefined ? 0 : 1, name);
  }
});

/** In the words of the reference. */
function summary({ isEnabled, listener, servers }: DatagramText): Read | null {
  if (!isEnabled) return null;
  const [server] = servers;
  if (server === undefined) return {};
  const members = [
    ...server.members.map((each) => ({ id: each.id, ipport: `${each.address}:${each.port}` })),
    ...server.disabled.map((id) => ({ id, ipport: null })),
  ];
  const [vip] = server.vips;
  return {
    Listener: { id: listener, ipports: [`${vip?.address}:${vip?.port}`] },
    ...(server.pool.isEnabled && { Pool: { id: server.pool.id } }),
    ...(members.length > 0 && { Members: members }),
  };
}
