// A pair whose hosts are upgraded one after the other, as docs/pair.md has an operator do it, under the eyes of a client.

import ava from 'ava';
import { areAlike, PAIR_VIP, type PairSide, startAgentPair } from '../support/agent-pair.ts';
import { otherVersion } from '../support/other-version.ts';
import { requires } from '../support/requirements.ts';
import { VIP_PORT } from '../support/service-objects.ts';

const programs = ['keepalived', 'ip', 'nft', 'nsenter', 'sysctl', 'openssl'];
const test = requires(ava, { haproxy: true, root: true, programs });

test.serial(
  'Both hosts of a pair are upgraded and one goes back, and a client keeps its member',
  async (t) => {
    // One that tells less than this one, and one that tells more.
    const less = '{ ...report, pending: undefined, loadBalancers: undefined }';
    const more = "{ weather: { sky: 'clear' }, ...report, capacity: 7, lowered: [...report.lowered] }";
    const older = await otherVersion(t, { version: '0.0.1', tells: less });
    const newer = await otherVersion(t, { version: '99.0.0', tells: more });
    const pair = await startAgentPair(t, { headgate: older, spec: { sessionAffinity: 'ClientIP' } });
    const [active, standby] = await areAlike(pair);
    const before = await dataplanes([active, standby]);
    const client = pair.network.watch(PAIR_VIP, VIP_PORT);

    await replace(standby, newer);
    await areAlike(pair);
    t.is((await active.pair()).peer?.version, '99.0.0');
    t.is((await standby.pair()).peer?.version, '0.0.1');
    t.like(await active.order('failover'), { status: 0, ok: true, active: 'peer' });
    await replace(active, newer);
    await areAlike(pair);
    t.is((await standby.pair()).peer?.version, '99.0.0');

    // It did not please: back on the host that is standby now.
    await replace(active, older);
    t.deepEqual(
      (await areAlike(pair)).map(({ name }) => name),
      [standby.name, active.name],
    );

    const { answers, members, failures } = await client.end();
    t.true(answers > 100);
    t.is(members.length, 1, 'the client keeps its member');
    // What is under way in the moment of the failover may be lost.
    t.true(failures.length <= 1, failures.join());
    t.deepEqual(await dataplanes([active, standby]), before);
    for (const { agent } of [active, standby]) t.false(agent.hasLogged('Both hosts of the pair'));
  },
);

/** As docs/pair.md says, but for the failover before. */
async function replace(side: PairSide, headgate: string): Promise<void> {
  const locked = await side.order('maintenance', 'on');
  if (!locked.ok) throw new Error(locked.message);
  await side.agent.stop();
  side.host.headgate = headgate;
  await side.start();
  const unlocked = await side.order('maintenance', 'off');
  if (!unlocked.ok) throw new Error(unlocked.message);
}

/** The processes that carry the traffic. */
function dataplanes(sides: readonly PairSide[]): Promise<readonly unknown[]> {
  return Promise.all(
    sides.map(async ({ host }) => [
      await host.master(),
      await host.worker(),
      (await host.status()).vrrp?.pid,
    ]),
  );
}
