// A site reliability engineer who has never seen Headgate follows docs/operations.md, docs/troubleshooting.md,
// docs/connection-log.md and docs/metrics.md.

import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { walk } from './walk.ts';

const programs = ['unshare', 'ip', 'curl', 'bash', 'jq', 'prometheus', 'promtool'];
const test = requires(ava, { haproxy: true, root: true, programs });

test('The documents lead from an alert to its cause and remedy, and from the connection log to a client', async (t) => {
  t.true((await walk(t, 'sre')).endsWith('\nThe walk is complete\n'));
});
