// A platform engineer who has never seen Headgate follows docs/install.md.

import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { walk } from './walk.ts';

const programs = ['unshare', 'ip', 'make', 'bash', 'git', 'dpkg-deb', 'strip', 'man'];
const test = requires(ava, { haproxy: true, root: true, programs });

test('The package of `make deb` is as docs/install.md describes it, checks its host and renders', async (t) => {
  t.true((await walk(t, 'platform-engineer')).endsWith('\nThe walk is complete\n'));
});
