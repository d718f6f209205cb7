import { once } from 'node:events';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import { AclIds } from '../../../../agent/haproxy/config/acl-ids.ts';
import { CandidateMaker, type CandidateOptions } from '../../../../agent/haproxy/config/candidate.ts';
import { Quarantine } from '../../../../agent/haproxy/config/quarantine.ts';
import { type RenderContext, renderContext } from '../../../../agent/haproxy/config/render-context.ts';
import { haproxyPaths } from '../../../../agent/haproxy/paths.ts';
import { runCommand } from '../../../../agent/host/run-command.ts';
import type { LoadBalancer } from '../../../../agent/model/load-balancer.ts';
import { requires } from '../../../support/basics/requirements.ts';
import { haproxyExecutable } from '../../../support/haproxy/haproxy.ts';
import { Loopback } from '../../../support/haproxy/rendered-haproxy.ts';
import { service, slice } from '../../../support/values/build.ts';
import { RENDER_SETTINGS } from '../../../support/values/render-settings.ts';
import { loadBalancerOf, translated } from '../../../support/values/translated.ts';

const test = requires(ava, { haproxy: true });

/** A maker that checks with the real HAProxy, after the shell commands `sh`, in which `$3` is the file. */
async function started(t: ExecutionContext, sh = '', given: Partial<CandidateOptions> = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-candidate-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const [executable, shown] = [join(folder, 'haproxy'), join(folder, 'shown')];
  const script = `#!/bin/sh\ncat "$3" >>${shown}\necho '# end' >>${shown}\n${sh}\nexec ${haproxyExecutable} "$@"\n`;
  await writeFile(executable, script);
  await chmod(executable, 0o755);
  await writeFile(shown, '');
  const context = renderContext(RENDER_SETTINGS, haproxyPaths(folder, folder), 100, new AclIds().idOf);
  const quarantine = new Quarantine();
  const refused: string[] = [];
  const maker = new CandidateMaker({
    executable,
    scratchFile: join(folder, 'candidate'),
    quarantine,
    context: () => context,
    writeFiles: async () => undefined,
    binding: { bound: () => undefined, ignoreAccess: false },
    onRefused: (key) => refused.push(key),
    ...given,
  });
  return {
    context,
    quarantine,
    maker,
    refused,
    /** The listeners in each file that HAProxy checked. */
    shown: async () =>
      (await readFile(shown, 'utf8'))
        .split('# end\n')
        .slice(0, -1)
        .map((text) => [...text.matchAll(/^listen (\S+)$/gm)].map(([, name = '']) => name)),
    isAccepted: async (chunks: readonly Buffer[]) => {
      const path = join(folder, 'result');
      await writeFile(path, chunks.join(''));
      const { exitCode } = await runCommand(haproxyExecutable, ['-c', '-f', path], { timeout: 30_000 });
      return exitCode === 0;
    },
  };
}

function good(name: string, annotations: Readonly<Record<string, string>> = {}): LoadBalancer {
  const ports = [{ port: 1_000 + name.length }];
  const model = translated([service({ name, ports, annotations }), slice({ serviceName: name })]);
  return loadBalancerOf(model, `default/${name}`);
}

/** HAProxy refuses this load balancer with its line: it has a health check that HAProxy does not know. */
function bad(name: string): LoadBalancer {
  const loadBalancer = good(name, { 'headgate.io/health-monitor': 'http' });
  const listeners = loadBalancer.listeners.map((listener) => {
    const { monitor } = listener.pool;
    return monitor
      ? { ...listener, pool: { ...listener.pool, monitor: { ...monitor, expectedCodes: 'nonsense' } } }
      : listener;
  });
  return { ...loadBalancer, listeners };
}

function all(...loadBalancers: readonly LoadBalancer[]): ReadonlyMap<string, LoadBalancer> {
  return new Map(loadBalancers.map((each) => [each.key, each]));
}

const listenerName = ({ listeners }: LoadBalancer): string => listeners[0]?.name ?? '';

test('A desired state that HAProxy accepts is the candidate after one check', async (t) => {
  const { maker, shown, isAccepted } = await started(t);
  const desired = all(good('a'), good('bb'));
  const { loadBalancers, chunks } = await maker.prepare(desired, all());
  t.deepEqual(loadBalancers, desired);
  t.is((await shown()).length, 1);
  t.true(await isAccepted(chunks));
});

test('HAProxy checks only new sections', async (t) => {
  const { maker, shown } = await started(t);
  const [a, b] = [good('a'), good('bb', { 'headgate.io/mode': 'http' })];
  await maker.prepare(all(a), all());
  await maker.prepare(all(a), all());
  await maker.prepare(all(a, b), all());
  t.deepEqual(await shown(), [[listenerName(a)], [listenerName(b)]]);
  t.true(maker.isChecked(all(a, b)));
});

test('A section that differs from an accepted one only in name, address and port is not checked', async (t) => {
  const { maker, shown, isAccepted } = await started(t);
  const [a, b, c] = [good('a'), good('bb'), good('ccc', { 'headgate.io/mode': 'http' })];
  await maker.prepare(all(a), all());
  const { loadBalancers, chunks } = await maker.prepare(all(a, b), all());
  t.deepEqual([...loadBalancers.keys()], ['default/a', 'default/bb']);
  t.true(maker.isChecked(all(a, b)));
  t.true(await isAccepted(chunks));
  t.deepEqual(await shown(), [[listenerName(a)]]);
  // If one new section has another shape, HAProxy checks all new sections.
  await maker.prepare(all(a, b, c, good('dddd')), all());
  t.deepEqual((await shown()).slice(1), [[listenerName(c), listenerName(good('dddd'))]]);
});

test('After a refused file HAProxy checks every section that its worker does not serve', async (t) => {
  const { maker, shown } = await started(t);
  const [a, b] = [good('a'), good('bb')];
  await maker.prepare(all(a), all());
  await maker.prepare(all(a, b), all());
  maker.refused(all(a));
  t.false(maker.isChecked(all(a, b)));
  await maker.prepare(all(a, b), all());
  t.deepEqual(await shown(), [[listenerName(a)], [listenerName(b)]]);
});

test('New members need no check', async (t) => {
  const { maker, shown } = await started(t);
  await maker.prepare(all(good('a')), all());
  const today = loadBalancerOf(
    translated([
      service({ name: 'a', ports: [1_001] }),
      slice({ serviceName: 'a', endpoints: ['10.0.0.9'] }),
    ]),
    'default/a',
  );
  const { chunks } = await maker.prepare(all(today), all());
  t.is((await shown()).length, 1);
  t.regex(chunks.join(''), /server 10\.0\.0\.9:8080/);
});

test('A load balancer without a listener for HAProxy needs no check', async (t) => {
  const { maker } = await started(t);
  const [a, pending] = [good('a'), { ...good('bb'), listeners: [] }];
  await maker.prepare(all(a), all());
  t.true(maker.isChecked(all(a, pending)));
  t.false(maker.isChecked(all(a, good('bb'))));
});

test('A change during the check is not in the candidate', async (t) => {
  const { maker } = await started(t);
  const desired = new Map(all(good('a')));
  const preparing = maker.prepare(desired, all());
  desired.set('default/bb', good('bb'));
  const { loadBalancers } = await preparing;
  t.deepEqual([...loadBalancers.keys()], ['default/a']);
  t.false(maker.isChecked(desired));
});

test('A load balancer that a worker serves needs no check', async (t) => {
  const { maker, shown } = await started(t);
  const a = good('a');
  maker.accept(all(a));
  await maker.prepare(all(a), all());
  t.deepEqual(await shown(), []);
});

test('Another global section makes HAProxy check all sections again', async (t) => {
  let threads = 1;
  const context: { current?: RenderContext } = {};
  const {
    maker,
    shown,
    context: base,
  } = await started(t, '', {
    context: () => ({ ...(context.current as RenderContext), threads }),
  });
  context.current = base;
  const a = good('a');
  await maker.prepare(all(a), all());
  threads = 2;
  await maker.prepare(all(a), all());
  t.deepEqual(await shown(), [[listenerName(a)], [listenerName(a)]]);
});

test('A load balancer that HAProxy rejects is left out with its reason, and the others stay', async (t) => {
  const { maker, quarantine, refused, isAccepted } = await started(t);
  const culprit = bad('bb');
  const { loadBalancers, chunks } = await maker.prepare(all(good('a'), culprit, good('ccc')), all());
  t.deepEqual([...loadBalancers.keys()], ['default/a', 'default/ccc']);
  t.deepEqual(refused, ['default/bb']);
  t.true(await isAccepted(chunks));
  t.regex(
    quarantine.problemsOf(culprit)[0]?.message ?? '',
    /^HAProxy rejects its configuration: config : parsing .*: 'http-check expect'/,
  );
});

test('A load balancer that HAProxy rejects keeps its last good structure', async (t) => {
  const { maker, isAccepted } = await started(t);
  const before = good('bb');
  await maker.prepare(all(before), all());
  const { loadBalancers, chunks } = await maker.prepare(all(bad('bb')), all(before));
  t.deepEqual(loadBalancers.get('default/bb')?.listeners, before.listeners);
  t.true(await isAccepted(chunks));
});

test('A load balancer whose last good structure is rejected as well is left out', async (t) => {
  const { maker, refused } = await started(t);
  const { loadBalancers } = await maker.prepare(all(bad('bb'), good('a')), all(bad('bb')));
  t.deepEqual([...loadBalancers.keys()], ['default/a']);
  t.deepEqual(refused, ['default/bb', 'default/bb']);
});

test('All load balancers at fault are left out', async (t) => {
  const { maker, isAccepted } = await started(t);
  const names = ['a', 'bb', 'ccc', 'dddd', 'eeeee'];
  const desired = all(...names.map((name, at) => (at % 2 === 0 ? bad(name) : good(name))));
  const { loadBalancers, chunks } = await maker.prepare(desired, all());
  t.deepEqual([...loadBalancers.keys()], ['default/bb', 'default/dddd']);
  t.true(await isAccepted(chunks));
});

test('A load balancer that HAProxy rejects without naming a line is found by halves', async (t) => {
  const sh = `grep -q 'listen default:bb:' "$3" && { echo '[ALERT] (1) : not enough memory' >&2; exit 1; }`;
  const { maker, quarantine, shown } = await started(t, sh);
  const culprit = good('bb');
  const { loadBalancers } = await maker.prepare(all(good('a'), culprit, good('ccc'), good('dddd')), all());
  t.deepEqual([...loadBalancers.keys()], ['default/a', 'default/ccc', 'default/dddd']);
  t.is(quarantine.problemsOf(culprit)[0]?.message, 'HAProxy rejects its configuration: not enough memory');
  t.true((await shown()).length < 10);
});

test('No load balancer is rejected if the global section is at fault', async (t) => {
  const sh = `echo '[ALERT] (1) : config : no such user' >&2; exit 1`;
  const { maker, refused } = await started(t, sh);
  await t.throwsAsync(maker.prepare(all(good('a')), all()), {
    code: 'HAPROXY_REJECTED',
    message: /no such user/,
  });
  t.deepEqual(refused, []);
});

test('An address of another program is left out, and binds of the worker are not tried', async (t) => {
  const server = createServer();
  const { address, port } = await new Loopback().place('192.0.2.1', 80);
  server.listen(port, address);
  await once(server, 'listening');
  t.teardown(() => server.close());
  const desired = all(
    loadBalancerOf(
      translated([service({ loadBalancerIP: undefined, statusIPs: [address, '127.0.0.1'], ports: [port] })]),
    ),
  );

  const foreign = await started(t, '', { binding: { bound: () => new Set(), ignoreAccess: false } });
  const [left] = (await foreign.maker.prepare(desired, all())).loadBalancers.values();
  t.deepEqual(left?.listeners[0]?.addresses, ['127.0.0.1']);
  t.like(foreign.quarantine.blocked, { length: 1, 0: { address, port } });
  t.deepEqual(foreign.refused, ['default/web']);

  const own = await started(t, '', {
    binding: { bound: () => new Set([`${address} ${port}`]), ignoreAccess: false },
  });
  t.deepEqual((await own.maker.prepare(desired, all())).loadBalancers, desired);
});

test('A load balancer is told once, however many of its ports another program has', async (t) => {
  const loopback = new Loopback();
  const places = [await loopback.place('192.0.2.1', 80), await loopback.place('192.0.2.1', 81)];
  for (const { address, port } of places) {
    const server = createServer().listen(port, address);
    await once(server, 'listening');
    t.teardown(() => server.close());
  }
  const [{ address } = { address: '' }] = places;
  const ports = places.map(({ port }) => port);
  const desired = all(
    loadBalancerOf(translated([service({ loadBalancerIP: undefined, statusIPs: [address], ports })])),
  );
  const { maker, quarantine, refused } = await started(t, '', {
    binding: { bound: () => new Set(), ignoreAccess: false },
  });
  await maker.prepare(desired, all());
  t.is(quarantine.blocked.length, 2);
  t.deepEqual(refused, ['default/web']);
});
