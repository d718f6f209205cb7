// Seven faults side by side: what each of nine places says of them, and what clients meet.

import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { kubeNeeds } from '../support/kube/kube.ts';
import { walk } from './walk.ts';

const programs = ['ip', 'nft', 'conntrack', 'sysctl', 'prometheus', 'unshare'];
const { programs: ofKube = [] } = kubeNeeds();
const test = requires(ava, { haproxy: true, root: true, programs: [...ofKube, ...programs] });

test('Every place says of each of seven faults what its clients meet', async (t) => {
  t.true((await walk(t, 'sre-faults')).endsWith('\nThe walk is complete\n'));
});
