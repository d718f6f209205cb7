// What a client of the kernel path meets, and the verdict: real nftables, members that refuse, are silent or answer.

import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { nftExecutable } from '../support/host/nft.ts';
import { askByConnections, UDP_MEMBER_PORT } from '../support/traffic/datagrams.ts';
import { dns, kernelStarted, VIP, VIP6 } from '../support/traffic/kernel-path.ts';

const test = requires(ava, { haproxy: true, programs: ['ip', 'nft', 'conntrack'], root: true });

/** Two rounds of the watch, and the time of a busy machine. */
const KNOWN_MS = 90_000;
/** Connections to silent members end after this. */
const PATIENCE_MS = 300;

interface Case {
  readonly port: number;
  readonly members: readonly string[];
  readonly verdict: string;
  readonly answers: readonly string[];
  readonly sentence?: RegExp;
  /** Ready members of both families. */
  readonly ready: string;
}

const REFUSED = /^connect_ECONNREFUSED/;
const CASES: Readonly<Record<string, Case>> = {
  good: { port: 8001, members: ['m3'], verdict: 'served', answers: ['m3'], ready: '2/2' },
  refuses: {
    ...{ port: 8002, members: ['m1'], verdict: 'members fail', answers: ['refused'], ready: '0/2' },
    sentence: /^\S+:\d+: (\d+) of \1 new connections got no answer in the last minute$/,
  },
  silent: {
    ...{ port: 8003, members: ['m2'], verdict: 'members fail', answers: ['timeout'], ready: '0/2' },
    sentence: /^\S+:\d+: (\d+) of \1 new connections got no answer in the last minute$/,
  },
  both: {
    ...{
      port: 8004,
      members: ['m1', 'm2'],
      verdict: 'members fail',
      answers: ['refused', 'timeout'],
      ready: '4/4',
    },
    sentence: /^TCP port 8004 \(IPv[46]\): (\d+) of \1 new connections got no answer in the last minute$/,
  },
};

test.serial('The verdict of TCP ports of the kernel path is what their clients meet', async (t) => {
  const { host, network, agent } = await kernelStarted(t);
  network.serve('m3', UDP_MEMBER_PORT);
  await network.run(
    'm2',
    nftExecutable,
    `table inet silent { chain in { type filter hook input priority 0; tcp dport ${UDP_MEMBER_PORT} drop; }; }`,
  );
  const web = (name: string, { port, members }: Pick<Case, 'port' | 'members'>) =>
    dns(members, network, { ports: [{ name: 'dns-tcp', port }] }, name, port, {
      'headgate.io/engine': 'kernel',
    });
  for (const [name, each] of Object.entries(CASES)) await host.write(`${name}.yaml`, web(name, each));
  for (const name of Object.keys(CASES))
    await host.until(
      `${name} is served`,
      async () => (await host.why(`default/${name}`)).verdict === 'served',
    );

  let isOver = false;
  t.teardown(() => {
    isOver = true;
  });
  const seen = new Map<string, Set<string>>();
  const asking = Promise.all(
    Object.entries(CASES).map(async ([name, { port }]) => {
      const answers = new Set<string>();
      seen.set(name, answers);
      while (!isOver)
        for (const vip of [VIP, VIP6])
          for (const answer of await askByConnections(network, vip, port, 10, PATIENCE_MS))
            answers.add(REFUSED.test(answer) ? 'refused' : answer);
    }),
  );
  const judged = async (name: string, verdict: string) =>
    host.until(
      `${name} is ${verdict}`,
      async () => (await host.why(`default/${name}`)).verdict === verdict,
      KNOWN_MS,
    );
  for (const [name, { verdict }] of Object.entries(CASES)) await judged(name, verdict);
  const { stdout } = await host.command('list');
  for (const [name, { verdict, answers, sentence, ready }] of Object.entries(CASES)) {
    t.deepEqual([...(seen.get(name) ?? [])].sort(), answers, name);
    const { reasons, problems } = await host.why(`default/${name}`);
    if (sentence === undefined) t.deepEqual(reasons, []);
    else
      t.true(
        reasons.some((reason) => sentence.test(reason)),
        reasons.join('\n'),
      );
    t.is(problems[0]?.reason, sentence && 'MembersFail');
    t.regex(stdout, new RegExp(`^default/${name} .* ${ready} .* ${verdict}(  |$)`, 'm'));
  }
  t.true(agent.hasLogged('All that clients tried at TCP port 8002 (IPv4) in the last minute failed'));

  // A member comes back.
  network.serve('m1', UDP_MEMBER_PORT);
  await judged('refuses', 'served');
  isOver = true;
  await asking;
});
