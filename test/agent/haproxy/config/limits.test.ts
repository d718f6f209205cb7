import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { maxConnections, needsOf } from '../../../../agent/haproxy/config/limits.ts';
import type { LoadBalancer } from '../../../../agent/model/load-balancer.ts';
import { requires } from '../../../support/basics/requirements.ts';
import { haproxyExecutable } from '../../../support/haproxy/haproxy.ts';
import { Loopback, startRendered } from '../../../support/haproxy/rendered-haproxy.ts';
import { clusterOf, node, service, slice } from '../../../support/values/build.ts';
import { loadBalancerOf, translateCluster, translated } from '../../../support/values/translated.ts';

const test = requires(ava, { haproxy: true });

const monitored = { 'headgate.io/health-monitor': 'tcp' };

test('needsOf() counts each address of a listener and each checked member', (t) => {
  const model = translated([
    service({ loadBalancerIP: undefined, statusIPs: ['192.0.2.1', '192.0.2.2'], annotations: monitored }),
    slice({ endpoints: ['10.0.0.1', '10.0.0.2', '10.0.0.3'] }),
    service({ name: 'api', ports: [81, { port: 53, protocol: 'UDP' }] }),
    slice({ serviceName: 'api' }),
    node(),
  ]);
  t.deepEqual(needsOf(model.loadBalancers.values()), {
    listeners: 3,
    checks: 3,
    hasHttp: false,
    hasRoutes: false,
    asksServers: false,
    verifiesTokens: false,
    reportsErrors: false,
    hasTls: false,
    asksForCertificates: false,
  });
});

test("needsOf() counts the checks of the kernel's members, and not those by UDP", (t) => {
  const ports = [{ port: 53, protocol: 'UDP' as const }];
  const needs = (type: string) =>
    needsOf(
      translated([
        service({ ports, annotations: { 'headgate.io/health-monitor': type } }),
        slice({ endpoints: ['10.0.0.1', '10.0.0.2'], ports }),
      ]).loadBalancers.values(),
    );
  t.deepEqual(needs('http'), { ...none, checks: 2 });
  t.deepEqual(needs('udp'), none);
});

test('needsOf() ignores a listener without an address', (t) => {
  const model = translated([
    service({ name: 'old', created: 1 }),
    service({ created: 2, annotations: monitored }),
    slice(),
  ]);
  t.deepEqual(needsOf([loadBalancerOf(model)]), {
    listeners: 0,
    checks: 0,
    hasHttp: false,
    hasRoutes: false,
    asksServers: false,
    verifiesTokens: false,
    reportsErrors: false,
    hasTls: false,
    asksForCertificates: false,
  });
});

const none = {
  listeners: 0,
  checks: 0,
  hasHttp: false,
  hasRoutes: false,
  asksServers: false,
  verifiesTokens: false,
  reportsErrors: false,
  hasTls: false,
  asksForCertificates: false,
};

test('maxConnections() uses the rest of the limit, in round numbers', (t) => {
  t.deepEqual(maxConnections(0, 20_000, none), { value: 9_600, problem: undefined });
  t.deepEqual(maxConnections(0, 1_048_576, none), { value: 200_000, problem: undefined });
  t.deepEqual(maxConnections(0, 4_096, { listeners: 1_000, checks: 0 }), {
    value: 1_200,
    problem: undefined,
  });
});

test('maxConnections() does not change with a few listeners', (t) => {
  const values = [0, 1, 100, 256].map(
    (listeners) => maxConnections(0, 20_000, { listeners, checks: 0 }).value,
  );
  t.deepEqual(new Set(values), new Set([9_600]));
});

test('maxConnections() keeps a configured number that fits', (t) => {
  t.deepEqual(maxConnections(12_345, 1_048_576, none), { value: 12_345, problem: undefined });
});

test('maxConnections() lowers a configured number that does not fit, and names the limit to raise', (t) => {
  t.deepEqual(maxConnections(10_000, 1_024, { listeners: 3, checks: 2 }), {
    value: 130,
    problem:
      'HAProxy needs 20756 file descriptors for 10000 connections, 3 listeners and 2 health checks, but the limit is 1024, so it accepts 130 connections: raise LimitNOFILE (ulimit -n) or lower the setting maxConnections',
  });
});

test('maxConnections() reports a limit that leaves less than a hundred connections', (t) => {
  const { value, problem } = maxConnections(0, 900, none);
  t.is(value, 100);
  t.regex(problem ?? '', /needs 956 file descriptors/);
});

test('The result of maxConnections() fits the limit, unless the limit is too low for a hundred connections', (t) => {
  const property = fc.property(
    fc.nat(1_000_000),
    fc.nat(2_000_000),
    fc.record({ listeners: fc.nat(20_000), checks: fc.nat(200_000) }),
    (desired, limit, needs) => {
      const { value } = maxConnections(desired, limit, needs);
      return value <= 100 || 2 * value + needs.listeners + needs.checks <= limit;
    },
  );
  t.notThrows(() => fc.assert(property));
});

test('HAProxy starts under the limit with the computed number, all listeners and checks', async (t) => {
  const model = translated([
    service({ ports: ports(30), annotations: monitored }),
    slice({ endpoints: ['127.0.0.1', '127.0.0.2', '127.0.0.3'], ports: ports(30) }),
  ]);
  const loadBalancer = await new Loopback().bindable(loadBalancerOf(model));
  const { value, problem } = maxConnections(0, 1_500, needsOf([loadBalancer]));
  t.is(problem, undefined);
  await starts(t, [loadBalancer], 1_500, value);
});

test('HAProxy starts with a Service that asks for more checks than there are descriptors, and keeps half of its connections', async (t) => {
  const limit = 20_000;
  const endpoints = Array.from({ length: 170 }, (_, at) => `127.0.2.${at}`);
  const greedy = service({ ports: ports(200), annotations: monitored });
  const bounds = { maxServersPerNamespace: 100_000, maxChecksPerNamespace: limit / 4 };
  const model = translateCluster(
    clusterOf([greedy, slice({ endpoints, ports: ports(200) })]),
    {},
    undefined,
    bounds,
  );
  const loadBalancer = await new Loopback().bindable(loadBalancerOf(model));
  const { value, problem } = maxConnections(0, limit, needsOf([loadBalancer]));
  t.is(problem, undefined);
  t.true(value >= maxConnections(0, limit, none).value / 2, `${value} connections`);
  await starts(t, [loadBalancer], limit, value);
});

function ports(count: number) {
  return Array.from({ length: count }, (_, at) => ({ name: `p${at}`, port: 1_000 + at }));
}

/** HAProxy starts if it may open `limit` files, and accepts `connections`. */
async function starts(
  t: ExecutionContext,
  loadBalancers: readonly LoadBalancer[],
  limit: number,
  connections: number,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-limits-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const executable = join(folder, 'haproxy');
  await writeFile(executable, `#!/bin/sh\nulimit -n ${limit}\nexec ${haproxyExecutable} "$@"\n`);
  await chmod(executable, 0o755);
  const { worker } = await startRendered(t, loadBalancers, { executable, maxConnections: connections });
  t.regex(await worker.runtime.ask('show info'), new RegExp(`^Maxconn: ${connections}$`, 'm'));
}
