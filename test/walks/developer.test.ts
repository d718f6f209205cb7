// A developer who has never seen Headgate follows README.md.

import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { walk } from './walk.ts';

const test = requires(ava, {
  haproxy: true,
  root: true,
  programs: ['unshare', 'ip', 'curl', 'make', 'bash'],
});

test("README's commands, its edit and its completion do what it says, without a warning", async (t) => {
  t.true((await walk(t, 'developer')).endsWith('\nThe walk is complete\n'));
});
