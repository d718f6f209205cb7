// A pair of an amphora of Headgate and one with Octavia's own agent: while an image is rolled out, a load balancer has both.

import ava from 'ava';
import { eventually } from '../support/basics/eventually.ts';
import { requires } from '../support/basics/requirements.ts';
import {
  MEMBER_PORTS,
  PAIR_VIP,
  SIDES,
  type Side,
  startAmphoraPair,
} from '../support/octavia/amphora-pair.ts';

const test = requires(ava, {
  root: true,
  haproxy: true,
  programs: ['ip', 'nft', 'nsenter', 'openssl', 'octavia-worker', 'keepalived', 'curl', 'ss'],
});

const CLIENTS = ['10.9.7.1', '10.9.7.2', '10.9.7.3', '10.9.7.4', '10.9.7.5', '10.9.7.6'] as const;

for (const master of SIDES) {
  const standby: Side = master === 'headgate' ? 'reference' : 'headgate';
  test.serial(`The VIP and the members of clients move from ${master} to ${standby}, and back`, async (t) => {
    const { network, holders, known, cut, join, amphora } = await startAmphoraPair(t, master);
    for (const client of CLIENTS)
      await network.run('client', 'ip', 'address', 'add', `${client}/32`, 'dev', 'eth0');
    /** The member of each client. */
    const members = (): Promise<readonly string[]> =>
      Promise.all(
        CLIENTS.map(async (from) => {
          const words = ['-s', '-m', '5', '--interface', from, `http://${PAIR_VIP}/`];
          return (await network.try('client', 'curl', ...words)).stdout;
        }),
      );
    await eventually(holders, (names) => names === master);
    const connected = ['-Htn', 'state', 'established', '( sport = :1025 or dport = :1025 )'];
    await eventually(
      () => network.run('amphora', 'ss', ...connected),
      (lines) => lines !== '',
    );
    const before = await members();
    t.true(
      before.every((member) => MEMBER_PORTS.some((port) => String(port) === member)),
      before.join(),
    );
    t.true(new Set(before).size > 1);
    // Each has learned from the other's HAProxy what it has not seen itself.
    await eventually(
      () => known(standby),
      (count) => count === CLIENTS.length,
    );
    const cutAt = performance.now();
    await cut(master);
    await eventually(holders, (names) => names.includes(standby));
    t.log(`The VIP moved ${Math.round(performance.now() - cutAt)} ms after the loss of ${master}`);
    t.deepEqual(await members(), before);
    await join(master);
    await eventually(holders, (names) => SIDES.some((side) => side === names));
    t.deepEqual(await members(), before);
    t.is((await amphora.nextHeartbeat()).refused, undefined);
  });
}
