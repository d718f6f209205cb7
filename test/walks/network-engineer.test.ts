// A network engineer who has never seen Headgate follows docs/bgp.md.

import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { walk } from './walk.ts';

const programs = ['unshare', 'nsenter', 'ip', 'sysctl', 'curl', 'bash', 'bird'];
const test = requires(ava, { haproxy: true, root: true, programs });

test('The page on BGP leads from two texts to a VIP that a router leads here, and to the reason if it does not', async (t) => {
  t.true((await walk(t, 'network-engineer')).endsWith('\nThe walk is complete\n'));
});
