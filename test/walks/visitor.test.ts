// A visitor of a page that the real oauth2-proxy guards, with a real browser.

import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { kubeNeeds, kubePrograms } from '../support/kube/kube.ts';
import { walk } from './walk.ts';

const BUILT = ['oauth2-proxy', 'mockoidc'];
const { programs = [] } = kubeNeeds(...BUILT);
const test = requires(ava, {
  haproxy: true,
  root: true,
  programs: [...programs, 'unshare', 'ip', 'curl', 'bash', 'openssl', 'chromium'],
});

test('A browser signs in and out at oauth2-proxy, through an Ingress and through a Gateway', async (t) => {
  await kubePrograms(BUILT);
  t.true((await walk(t, 'visitor')).endsWith('\nThe walk is complete\n'));
});
