// What SIGHUP makes of other settings of VRRP on a pair of whole agents.

import ava from 'ava';
import { areAlike, type PairSide, startAgentPair } from '../support/agent-pair.ts';
import { requires } from '../support/requirements.ts';

const programs = ['keepalived', 'ip', 'nft', 'nsenter', 'sysctl', 'openssl'];
const test = requires(ava, { haproxy: true, root: true, programs });

test.serial('SIGHUP gives keepalived other settings, and says which it does not take', async (t) => {
  const pair = await startAgentPair(t);
  const [active, standby] = await areAlike(pair);
  const pid = (await active.host.status()).vrrp?.pid;
  for (const side of [active, standby]) {
    await side.configure({ advertInterval: '400ms', priority: side === active ? 240 : 220 });
    side.agent.signal('SIGHUP');
    const priority = side === active ? 240 : 220;
    await side.host.until('it has the priority', async () => (await priorityOf(side)) === priority);
    t.true(side.agent.hasLogged('Settings: a change is taken'));
  }
  t.deepEqual(
    (await areAlike(pair)).map(({ name }) => name),
    [active.name, standby.name],
  );
  t.regex(await active.host.stateFile('keepalived/keepalived.conf'), /advert_int 0\.4\n/);

  await active.configure({ interface: 'eth9' });
  active.agent.signal('SIGHUP');
  await active.host.until('the fault is said', async () =>
    /eth9/.test((await active.host.status()).vrrp?.fault ?? ''),
  );
  t.is(await active.role(), 'master');
  await active.configure({ peers: [] });
  active.agent.signal('SIGHUP');
  await active.host.until('they are refused', async () =>
    active.agent.hasLogged('Settings: kept as they were'),
  );
  await active.configure({ priority: 240, advertInterval: '400ms' });
  active.agent.signal('SIGHUP');
  await active.host.until('all is well', async () => (await active.host.status()).vrrp?.fault === '');
  t.is((await active.host.status()).vrrp?.pid, pid);
});

async function priorityOf({ host }: PairSide): Promise<number | undefined> {
  return (await host.status()).vrrp?.instances[0]?.priority;
}
