import test from 'ava';
import { AclIds } from '../../../../agent/haproxy/config/acl-ids.ts';
import { configText } from '../../../../agent/haproxy/config/config-text.ts';
import { FormerDispatchers } from '../../../../agent/haproxy/config/former-dispatchers.ts';
import { renderContext } from '../../../../agent/haproxy/config/render-context.ts';
import { haproxyPaths } from '../../../../agent/haproxy/paths.ts';
import { FakeClock } from '../../../support/basics/fake-clock.ts';
import { RENDER_SETTINGS } from '../../../support/values/render-settings.ts';
import { gatewayOf, sectionOf } from '../../../support/values/routes.ts';

const tls = {
  minVersion: '1.2',
  ciphers: [],
  alpn: [],
  clients: undefined,
  certificates: [
    {
      name: 'secret default/web',
      sha1: '',
      fingerprint: '0a',

      expires: 0,
      chainLength: 1,
      bytes: 1,
    },
  ],
} as const;
const dispatch = { kind: 'tls', hosts: [] } as const;
const PLACE = { address: '192.0.2.1', port: 443 };
const plain = gatewayOf(PLACE, [sectionOf('web', '*')], { tls });
const dispatched = gatewayOf(PLACE, [sectionOf('web', '*')], { tls, dispatch });
const name = plain.listeners[0]?.name ?? '';

const booted = (...all: readonly (typeof plain)[]) => new Map(all.map((each) => [each.key, each]));

test('A listener counts as formerly dispatched until no client can wait in its dispatcher any more', async (t) => {
  const clock = new FakeClock();
  const former = new FormerDispatchers(clock);
  t.deepEqual([...former.after(booted(plain))], []);
  t.deepEqual([...former.after(booted(dispatched))], [name]);
  await clock.advance(6_000);
  t.deepEqual([...former.after(booted(plain))], [name], 'a worker before the last one');
  await clock.advance(6_000);
  t.deepEqual([...former.after(booted(plain))], []);
});

test('The file keeps the socket of such a listener, with the same structure', async (t) => {
  const context = renderContext(RENDER_SETTINGS, haproxyPaths('/s', '/r'), 100, new AclIds().idOf);
  const bindsIn = async (loadBalancer: typeof plain, formerly: readonly string[]) => {
    const { chunks, structure } = await configText([loadBalancer], {
      ...context,
      formerlyDispatched: new Set(formerly),
    });
    const section =
      chunks
        .join('')
        .split(`\nfrontend ${name}\n`)[1]
        ?.split(/\n(?:frontend|backend) /)[0] ?? '';
    return {
      structure,
      section,
      binds: [...section.matchAll(/^ {4}bind (\S+) (.*?)ssl/gm)].map(([, to, words]) => [to, words]),
    };
  };
  const [before, without, kept, again] = [
    await bindsIn(dispatched, []),
    await bindsIn(plain, []),
    await bindsIn(plain, [name]),
    await bindsIn(plain, []),
  ];
  const [[socket = ''] = []] = before.binds;
  t.true(socket.startsWith('unix@/r/haproxy/tls-'));
  t.deepEqual(without.binds, [['192.0.2.1:443', '']]);
  t.deepEqual(kept.binds, [
    ['192.0.2.1:443', ''],
    [socket, 'mode 600 accept-proxy '],
  ]);
  t.true(kept.section.includes('tcp-request session reject if !allowed'), 'the client is known by then');
  t.is(kept.structure, without.structure);
  t.deepEqual(again, without);
  t.deepEqual(await bindsIn(dispatched, [name]), before);
});
