import ava from 'ava';
import { conntrackUsage, whyFull } from '../../../../agent/nftables/flows/conntrack-usage.ts';
import { requires } from '../../../support/basics/requirements.ts';
import { TestNetwork } from '../../../support/host/namespaces.ts';

const test = requires(ava, { root: true, programs: ['ip', 'nft', 'nsenter', 'sysctl'] });

ava('A table with room is no fault; one that is nearly full is, with the remedy', (t) => {
  t.is(whyFull(undefined), '');
  t.is(whyFull({ entries: 900, limit: 1_000 }), '');
  t.is(
    whyFull({ entries: 950, limit: 1_000 }),
    "the kernel's table of connections has nearly all of its 1000 entries, and drops new flows without room: raise net.netfilter.nf_conntrack_max (sysctl -w net.netfilter.nf_conntrack_max=2000)",
  );
});

test('conntrackUsage() counts the flows of a network namespace', async (t) => {
  const network = await TestNetwork.create(t, ['lb', 'client']);
  await network.run(
    'lb',
    'nft',
    'table ip seen { chain in { type filter hook input priority 0; ct state new accept; }; }',
  );
  network.serve('lb');
  while ((await network.whoServes(network.v4('lb'))) !== 'lb');
  const { entries = 0, limit = 0 } = (await conntrackUsage(network.netns('lb'))) ?? {};
  t.true(entries >= 1, `${entries} entries`);
  t.true(limit > entries);
});
