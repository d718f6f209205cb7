// An agent that dies between any two commands of a change, and commands of another process to HAProxy. The next agent or
// the audit restores the desired state.

import ava from 'ava';
import { AclIds } from '../../agent/haproxy/config/acl-ids.ts';
import { planLoadBalancer } from '../../agent/haproxy/plan.ts';
import { Running } from '../../agent/haproxy/running.ts';
import { commandText } from '../../agent/haproxy/socket/command-text.ts';
import { parseAcl, parseInfo } from '../../agent/haproxy/socket/readings.ts';
import { capabilitiesOf } from '../../agent/haproxy/socket/version.ts';
import type { LoadBalancer } from '../../agent/model/load-balancer.ts';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { clusterOf } from '../support/values/build.ts';
import { objectsOf } from '../support/values/manifests.ts';
import { type Web, webObjects } from '../support/values/service-objects.ts';
import { loadBalancerOf, translateCluster } from '../support/values/translated.ts';

const test = requires(ava, { haproxy: true });

const annotations = { 'health-monitor': 'tcp', 'health-monitor-interval': '5m' };

test.serial(
  'The next agent completes the change of an agent that died between any two commands, before any audit',
  async (t) => {
    const host = await TestHost.create(t, { flags: ['--audit-interval', '1h'] });
    const aclIds = new AclIds();
    /** Each round has another member, another draining member, a kept member and other ranges. */
    const web = (round: number): Web => {
      const [kept, drained] = [11 + round, 12 + round].map((last) => host.address(last)) as [string, string];
      return {
        address: host.address(1),
        members: [host.address(200), kept, { address: drained, terminating: round % 2 === 1 }],
        annotations,
        spec: { loadBalancerSourceRanges: ['127.0.0.0/8', `10.${round}.0.0/16`] },
      };
    };
    const wanted = (round: number): LoadBalancer => {
      const text = webObjects(web(round))
        .map((each) => JSON.stringify(each))
        .join('\n---\n');
      return loadBalancerOf(translateCluster(clusterOf(objectsOf(text)), { handleUnclassed: true }));
    };
    await host.serve(web(0));
    await (await host.start()).kill();
    const capabilities = capabilitiesOf(parseInfo(await host.haproxy('show info')).version);
    const commandsTo = (round: number): readonly string[] => {
      const [before, after] = [wanted(round - 1), wanted(round)];
      const running = Running.booted([before], aclIds.idOf);
      return planLoadBalancer({ key: after.key, running, before, after }).commands.map((command) =>
        commandText(command, capabilities),
      );
    };
    let most = 1;
    for (let round = 1; round <= most; round++) {
      const commands = commandsTo(round);
      most = Math.max(most, commands.length + 1);
      for (const line of commands.slice(0, round - 1)) await host.haproxy(line);
      await host.serve(web(round));
      const agent = await host.launch();
      await host.until(
        'the agent has found HAProxy',
        async () => agent.hasLogged('Adopted the running HAProxy'),
        60_000,
      );
      const after = `after ${round - 1} of ${commands.length} commands`;
      await host.until(`all is as wanted ${after}`, () => isDesired(host, wanted(round), aclIds));
      await agent.kill();
    }
    t.true(most >= 8, `Only ${most} rounds`);
    t.is(await host.reloads(), 0);
  },
);

test.serial('The audit undoes the command of another process for a server', async (t) => {
  const host = await TestHost.create(t, { flags: ['--audit-interval', '1s'] });
  const web: Web = { address: host.address(1), members: [host.address(11), host.address(12)], annotations };
  await host.serve(web);
  await host.start();
  const text = webObjects(web)
    .map((each) => JSON.stringify(each))
    .join('\n---\n');
  const loadBalancer = loadBalancerOf(
    translateCluster(clusterOf(objectsOf(text)), { handleUnclassed: true }),
  );
  const [{ name: backend = '', pool: { members: [member] = [] } = {} } = {}] =
    loadBalancer.listeners as never as [LoadBalancer['listeners'][number]];
  const server = `${backend}/${member?.name}`;
  const aclIds = new AclIds();
  const add = (more: string): readonly string[] => [
    `set server ${server} state maint`,
    `del server ${server}`,
    `add server ${server} ${member?.name} ${more}`,
    `set server ${server} state ready`,
  ];
  const undone = async (lines: readonly string[]): Promise<void> => {
    for (const line of lines)
      await host.until(`HAProxy does: ${line}`, async () =>
        /^(New server.*|Server deleted.*)?\s*$/.test(await host.haproxy(line)),
      );
    t.false(await isDesired(host, loadBalancer, aclIds), lines.at(-1));
    await host.until(`undone: ${lines.join(', ')}`, () => isDesired(host, loadBalancer, aclIds));
  };
  for (const line of [
    `set server ${server} state maint`,
    `set server ${server} state drain`,
    `set server ${server} weight 1`,
    `disable health ${server}`,
  ])
    await undone([line]);
  t.is(await host.reloads(), 0, 'Commands are enough');
  await undone(add(`id ${member?.id} weight 16`));
  t.is(await host.reloads(), 1, 'It had no check at all');
  await undone(add(`id 7 weight 16 check inter 300s`));
  t.is(await host.reloads(), 2, 'It had another id');
  await host.haproxy(`set server ${server} addr 127.0.0.1 port 1`);
  await host.until('the worker that was moved is replaced', async () => (await host.reloads()) === 3);
  await host.until('undone', () => isDesired(host, loadBalancer, aclIds));
});

/** Whether exactly the desired members serve, each with its check, and exactly the desired clients are allowed. */
async function isDesired(host: TestHost, { listeners }: LoadBalancer, aclIds: AclIds): Promise<boolean> {
  const rows = await host.servers();
  for (const { name, pool, allowedCidrs } of listeners) {
    const serving = rows
      .filter(({ backend, state }) => backend === name && state !== 'maint')
      .map(({ server, id, address, port, weight, state, check }) =>
        [server, id, address, port, state === 'drain' ? 0 : weight, check].join(' '),
      );
    const wanted = pool.members.map(({ name: server, id, address, port, weight, state }) =>
      [server, id, address, port, state === 'drain' ? 0 : weight, 'on'].join(' '),
    );
    if (serving.sort().join() !== wanted.sort().join()) return false;
    const allowed = parseAcl((await host.haproxy(`show acl #${aclIds.idOf(name, 0)}`)).trim());
    if ([...allowed].sort().join() !== [...allowedCidrs].sort().join()) return false;
  }
  return true;
}
