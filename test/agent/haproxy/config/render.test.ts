import test from 'ava';
import { AclIds } from '../../../../agent/haproxy/config/acl-ids.ts';
import { configText, inFileOrder } from '../../../../agent/haproxy/config/config-text.ts';
import {
  descriptionOf,
  renderGlobal,
  renderLoadBalancer,
  structureHash,
} from '../../../../agent/haproxy/config/render.ts';
import { type RenderContext, renderContext } from '../../../../agent/haproxy/config/render-context.ts';
import { haproxyPaths } from '../../../../agent/haproxy/paths.ts';
import type { Listener } from '../../../../agent/model/load-balancer.ts';
import { service, slice } from '../../../support/values/build.ts';
import { RENDER_SETTINGS } from '../../../support/values/render-settings.ts';
import { loadBalancerOf, translated } from '../../../support/values/translated.ts';

function context(maxConnections = 100, aclIds = new AclIds()): RenderContext {
  return renderContext(RENDER_SETTINGS, haproxyPaths('/var/lib', '/run'), maxConnections, aclIds.idOf);
}

const CONTEXT = context();
const webOf = (...objects: Parameters<typeof translated>[0]) =>
  loadBalancerOf(translated([service(), ...objects]));
const web = webOf(slice());
const api = loadBalancerOf(translated([service({ name: 'api' })]), 'default/api');

test('The global section has exactly the settings of HAProxy', (t) => {
  const paths = haproxyPaths('/var/lib', '/run');
  const given = {
    maxConnectionsPerNamespace: 0,
    threads: 3,
    hardStopAfter: 90_000,
    maxOldWorkers: 5,
    haproxyUser: 'lb',
    haproxyGroup: 'lbs',
    routeMetrics: false,
    connectionLogTarget: { kind: 'journald' } as const,
    connectionLogFormat: 'json' as const,
  };
  const lines = (settings: typeof given): readonly string[] =>
    renderGlobal(renderContext(settings, paths, 777, new AclIds().idOf), 'x')
      .split('\n')
      .flatMap(
        (line) => /^ {4}((?:nbthread|maxconn|hard-stop|mworker-max|user|group) ?.*)/.exec(line)?.[1] ?? [],
      );
  t.deepEqual(lines(given), [
    'maxconn 777',
    'nbthread 3',
    'hard-stop-after 90000ms',
    'mworker-max-reloads 20',
    'user lb',
    'group lbs',
  ]);
  t.deepEqual(lines({ ...given, threads: 0, haproxyUser: '', haproxyGroup: '' }), [
    'maxconn 777',
    'hard-stop-after 90000ms',
    'mworker-max-reloads 20',
  ]);
});

test('The file has the usual weight once, and a server only another weight', (t) => {
  const [usual, heavy, draining] = web.listeners.flatMap(({ pool }) =>
    [{}, { weight: 40 }, { state: 'drain' } as const].map((change) => ({ ...pool.members[0], ...change })),
  );
  const weights = [usual, heavy, draining].map((member) => {
    const listeners = web.listeners.map((listener) => ({
      ...listener,
      pool: { ...listener.pool, members: [member] as Listener['pool']['members'] },
    }));
    const text = renderLoadBalancer({ ...web, listeners }, CONTEXT).toString();
    return /^ {4}server .*?( weight \d+)?$/m.exec(text)?.[1];
  });
  t.deepEqual(weights, [undefined, ' weight 40', ' weight 0']);
  t.regex(renderGlobal(CONTEXT, 'x'), /^defaults\n(?: {4}.*\n)* {4}default-server weight 16\n/m);
});

test('structureHash() does not change with members', (t) => {
  t.is(structureHash(CONTEXT, [web]), structureHash(CONTEXT, [webOf()]));
});

test('structureHash() changes with an option, a listener or the global section', (t) => {
  const other = loadBalancerOf(translated([service({ affinitySeconds: 60 })]));
  const hashes = [
    structureHash(CONTEXT, [web]),
    structureHash(CONTEXT, [other]),
    structureHash(CONTEXT, [api, web]),
    structureHash(CONTEXT, []),
    structureHash(context(101), [web]),
  ];
  t.is(new Set(hashes).size, hashes.length);
});

test('structureHash() ignores a load balancer without addresses', (t) => {
  const unserved = loadBalancerOf(translated([service({ ports: [{ port: 80, protocol: 'UDP' }] })]));
  t.is(structureHash(CONTEXT, [unserved]), structureHash(CONTEXT, []));
});

test('structureHash() changes with the ids of ACLs', (t) => {
  const [first, second] = [0, 1].map(() => context(100, new AclIds(() => 500_000)));
  if (first === undefined || second === undefined) throw new Error('No context');
  second.aclId('default:web:tcp:80:v4', 0);
  t.not(structureHash(first, [api, web]), structureHash(second, [api, web]));
});

test('The description of a worker has its structure after a prefix', async (t) => {
  const { chunks, structure } = await configText([web], CONTEXT);
  t.regex(structure, /^[0-9a-f]{32}$/);
  t.true(chunks.join('').includes(`\n    description ${descriptionOf(structure)}\n`));
});

test('renderLoadBalancer() renders a load balancer with TLS for each HAProxy with the paths of its own files', (t) => {
  const web = loadBalancerOf(translated([service(), slice()]));
  const certificate = {
    name: 'default/web',
    fingerprint: 'a',
    sha1: 'A',
    chainLength: 0,
    bytes: 1,
    expires: 0,
  };
  const tls = {
    certificates: [certificate],
    minVersion: '1.2',
    ciphers: [],
    clients: undefined,
    alpn: [],
  } as const;
  const secure = { ...web, listeners: web.listeners.map((each) => ({ ...each, tls })) };
  for (const folder of ['/run/main', '/run/landing', '/run/main'])
    t.regex(
      renderLoadBalancer(secure, { ...CONTEXT, certificates: folder }).toString(),
      new RegExp(` crt-list ${folder}/`),
    );
});

test('renderLoadBalancer() renders a load balancer once', (t) => {
  let rendered = 0;
  const counting = {
    ...CONTEXT,
    aclId: (listener: string, line: number) => {
      rendered++;
      return CONTEXT.aclId(listener, line);
    },
  };
  const fresh = webOf(slice());
  const section = renderLoadBalancer(fresh, counting);
  t.is(renderLoadBalancer(fresh, counting), section);
  t.is(rendered, 1);
});

test('A load balancer without addresses has no section', (t) => {
  const nowhere = loadBalancerOf(translated([service({ loadBalancerIP: undefined })]));
  t.is(renderLoadBalancer(nowhere, CONTEXT).length, 0);
});

test('The file is in the order of keys', (t) => {
  const keys = ['b/a', 'a/b', 'a/a', 'a/b-c'];
  const map = new Map(keys.map((key) => [key, { ...web, key }]));
  t.deepEqual(
    inFileOrder(map).map(({ key }) => key),
    ['a/a', 'a/b', 'a/b-c', 'b/a'],
  );
});

test('configText() has the sections of all load balancers', async (t) => {
  const many = Array.from({ length: 450 }, (_, at) =>
    loadBalancerOf(translated([service({ name: `s${at}`, ports: [1_000 + at] })]), `default/s${at}`),
  );
  const { chunks } = await configText(many, CONTEXT);
  const sections = many.map((each) => renderLoadBalancer(each, CONTEXT)).join('');
  t.is(chunks.slice(1).join(''), sections);
  t.regex(String(chunks[0]), /^# Written by headgate/);
});
