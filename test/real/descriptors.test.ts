// An agent that cannot open files for a while reads little, and treats nothing that it cannot read as removed.

import { readdir } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import ava from 'ava';
import { runCommand } from '../../agent/host/run-command.ts';
import { requires } from '../support/basics/requirements.ts';
import { webObjects } from '../support/values/service-objects.ts';
import { pairOf, startAgentPair } from '../support/vrrp/agent-pair.ts';
import { SteadyClient } from '../support/vrrp/steady-client.ts';

const programs = ['keepalived', 'ip', 'nft', 'nsenter', 'sysctl', 'openssl', 'prlimit'];
const test = requires(ava, { haproxy: true, root: true, programs });

const VIP = '10.9.1.1';
/** Milliseconds: several audits, and longer than the limit for an answer of HAProxy. */
const WHILE = 4_000;
/** Longer than a busy machine delays HAProxy. */
const SILENCE = '3s';

test.serial(
  'The active host keeps its role and repairs nothing while its agent lacks descriptors',
  async (t) => {
    const { active, network, roles } = await startAgentPair(t, VIP, {
      flags: ['--audit-interval', '1s', '--pair-lower-after', SILENCE],
      prepare: (host, net) =>
        host.write('web.yaml', webObjects({ address: VIP, port: 8080, members: [net.v4('client')] })),
    });
    const { host, agent } = active;
    const before = await host.status();
    const repairs = (await agent.metrics())('headgate_repairs_total');
    const client = new SteadyClient(network, 'client', VIP, 8080);
    for (const left of [0, 2, 8]) {
      const open = (await readdir(`/proc/${agent.pid}/fd`)).length;
      const from = agent.log.length;
      await limit(agent.pid, open + left);
      await delay(WHILE);
      await limit(agent.pid, 20_000);
      await host.until('all is well again', async () => (await host.status()).fault === '');
      t.false(agent.hasExited);
      for (const said of ['has ended', 'Another process', 'is lowered'])
        t.false(
          agent.hasLogged(said, from),
          `${left} left: ${said}: ${JSON.stringify(agent.log.slice(from))}`,
        );
    }
    t.deepEqual((await client.stop()).failures, {});
    const after = await host.status();
    t.is(after.vrrp?.pid, before.vrrp?.pid);
    t.is(after.haproxy.workerPid, before.haproxy.workerPid);
    t.is(after.vrrp?.instances[0]?.transitions, before.vrrp?.instances[0]?.transitions);
    t.is((await agent.metrics())('headgate_repairs_total'), repairs);
    t.deepEqual((await pairOf(host)).lowered, []);
    t.is(await roles(), 'master,backup');
  },
);

/** Sets the limit of open files of a process. */
async function limit(pid: number, files: number): Promise<void> {
  const { exitCode, stderr } = await runCommand('prlimit', ['--pid', `${pid}`, `--nofile=${files}:`], {
    timeout: 10_000,
  });
  if (exitCode !== 0) throw new Error(stderr);
}
