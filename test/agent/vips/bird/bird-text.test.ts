import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { SecretText } from '../../../../agent/base/secret-text.ts';
import type { BgpPeer } from '../../../../agent/vips/bgp.ts';
import { BirdText } from '../../../../agent/vips/bird/bird-text.ts';
import { bgpPeer, bgpSettings } from '../../../support/bgp/bgp-values.ts';

const peer = (name: string, last: number, secret?: string): BgpPeer =>
  bgpPeer({
    name,
    address: `192.0.2.${last}`,
    object: { secret: secret === undefined ? undefined : { name: secret, key: 'password' } },
  });

async function made(t: ExecutionContext, peers: readonly BgpPeer[]) {
  const directory = await mkdtemp(join(tmpdir(), 'hg-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const config = join(directory, 'bird.conf');
  const state = { peers, areRead: true, now: 0 };
  const secrets = new Map<string, string>();
  const create = () =>
    new BirdText({
      paths: { config, vips: { v4: '/v4', v6: '/v6' } },
      bgp: () => bgpSettings({ peers: state.peers }),
      group: () => undefined,
      peers: {
        areRead: () => state.areRead,
        secret: ({ name }) => {
          const text = secrets.get(name);
          return text === undefined ? { why: 'there is no such Secret' } : { text: new SecretText(text) };
        },
        problems: () => [],
      },
      now: () => state.now,
    });
  return { config, state, secrets, create };
}

const sessionsIn = (text: string) =>
  Array.from(text.matchAll(/^protocol bgp hg_(\w+) \{.*?^\}/gms), ([block, name = '']) => {
    const [, password = ''] = /password "(.*)"/.exec(block) ?? [];
    return `${name}${password && ` ${password}`}`;
  });

test('BirdText leaves a peer without its password out, and all others in', async (t) => {
  const { create, secrets } = await made(t, [peer('a', 1, 'none'), peer('b', 2), peer('c', 3, 'tor')]);
  secrets.set('tor', 'a password');
  const text = create();
  t.deepEqual(sessionsIn(await text.render()), ['b', 'c a password']);
  t.is(text.why('a'), 'the key "password" of the Secret "none": there is no such Secret');
  t.is(text.why('c'), '');
  secrets.set('none', 'x\ny');
  await text.render();
  t.regex(text.why('a'), /must have one line of 1 to 80 printable/);
});

test('BirdText keeps the password that BIRD has for a peer at its address while the Secret cannot be used', async (t) => {
  const { create, secrets, config, state } = await made(t, [peer('a', 1, 'tor')]);
  secrets.set('tor', 'first } one');
  await writeFile(config, await create().render());
  secrets.delete('tor');
  const next = create();
  t.deepEqual(sessionsIn(await next.render()), ['a first } one']);
  t.regex(next.why('a'), /there is no such Secret/);
  state.peers = [peer('a', 9, 'tor')];
  t.deepEqual(sessionsIn(await next.render()), [], 'it is no password for another router');
});

test('BirdText leaves the file of an agent before this one as it is until all objects have been read', async (t) => {
  const { create, config, state } = await made(t, []);
  state.areRead = false;
  const text = create();
  t.deepEqual(sessionsIn(await text.render()), [], 'there is no file yet');
  await writeFile(config, 'of before');
  t.is(await text.render(), 'of before');
  state.areRead = true;
  t.not(await text.render(), 'of before');
});

test('BirdText keeps the former version of a peer whose session did not come back, and takes every other change', async (t) => {
  const { create, secrets, state } = await made(t, [peer('a', 1, 'tor'), peer('b', 2)]);
  secrets.set('tor', 'right');
  const text = create();
  await text.render();
  text.proved();
  secrets.set('tor', 'wrong');
  t.deepEqual(sessionsIn(await text.render()), ['a wrong', 'b']);
  text.refuse(['hg_a']);
  state.peers = [...state.peers, peer('c', 3)];
  t.deepEqual(sessionsIn(await text.render()), ['a right', 'b', 'c']);
  t.regex(text.why('a'), /^does not come back with what has changed/);
  t.regex(text.fault, /^The session of a does not come back/);
  text.proved();
  secrets.set('tor', 'another');
  t.deepEqual(sessionsIn(await text.render()), ['a another', 'b', 'c'], 'a new version is tried');
  t.is(text.fault, '');
});

test('BirdText tries a refused version again once the former one does not work either', async (t) => {
  const { create, secrets, state } = await made(t, [peer('a', 1, 'tor')]);
  secrets.set('tor', 'old');
  const text = create();
  await text.render();
  text.proved();
  secrets.set('tor', 'new');
  await text.render();
  text.refuse(['hg_a']);
  t.false(
    text.retry(() => false),
    'a session needs a while to come back',
  );
  state.now = 60_000;
  t.false(text.retry(() => true));
  t.deepEqual(sessionsIn(await text.render()), ['a old']);
  t.true(
    text.retry(() => false),
    'the router has the new password now',
  );
  t.deepEqual(sessionsIn(await text.render()), ['a new']);
});

test('BirdText leaves out a peer for which BIRD refuses the file, or keeps its former version, until it is another', async (t) => {
  const { create, state } = await made(t, [peer('a', 1), peer('b', 2)]);
  const text = create();
  await text.render();
  text.proved();
  const refuses = async (all: string) => (all.includes('192.0.2.66') ? 'line 9: no' : '');
  state.peers = [peer('a', 66), peer('b', 3), peer('c', 4)];
  await text.render();
  t.true(await text.isolate(refuses));
  const now = await text.render();
  t.deepEqual(sessionsIn(now), ['a', 'b', 'c']);
  t.true(now.includes('192.0.2.1 ') && now.includes('192.0.2.3 ') && !now.includes('192.0.2.66'));
  t.is(text.why('a'), 'BIRD refuses it: line 9: no');
  t.false(await text.isolate(refuses), 'it is not in the text any more');
  state.peers = [peer('d', 66), peer('b', 3)];
  await text.render();
  t.true(await text.isolate(refuses));
  t.deepEqual(sessionsIn(await text.render()), ['b'], 'there is no former version');
  t.false(await text.isolate(async () => 'everything'), 'no peer is to blame');
});
