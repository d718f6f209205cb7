import { strictEqual } from 'node:assert/strict';
import test from 'ava';
import fc from 'fast-check';
import { AclIds } from '../../../../agent/haproxy/config/acl-ids.ts';
import {
  allowedLines,
  backendsOf,
  bindsOf,
  hasSection,
  isForHaproxy,
  serverKeywords,
  structureOf,
} from '../../../../agent/haproxy/config/listener-config.ts';
import { renderLoadBalancer } from '../../../../agent/haproxy/config/render.ts';
import { renderContext } from '../../../../agent/haproxy/config/render-context.ts';
import { haproxyPaths } from '../../../../agent/haproxy/paths.ts';
import { planLoadBalancer } from '../../../../agent/haproxy/plan.ts';
import { Running } from '../../../../agent/haproxy/running.ts';
import { commandText } from '../../../../agent/haproxy/socket/command-text.ts';
import { capabilitiesOf, parseVersion } from '../../../../agent/haproxy/socket/version.ts';
import type { Listener, LoadBalancer, Tls } from '../../../../agent/model/load-balancer.ts';
import { service } from '../../../support/values/build.ts';
import { CertificateTexts } from '../../../support/values/certificate-texts.ts';
import { AUTHORITY, WEB } from '../../../support/values/certificates.ts';
import { anyLoadBalancer, loadBalancer, nearlyAlike } from '../../../support/values/load-balancers.ts';
import { RENDER_SETTINGS } from '../../../support/values/render-settings.ts';
import {
  gatewayOf,
  sectionOf as hostSection,
  matchOf,
  patternOf,
  ruleOf,
} from '../../../support/values/routes.ts';
import { listenerOf, translated } from '../../../support/values/translated.ts';

const CONTEXT = renderContext(RENDER_SETTINGS, haproxyPaths('/var/lib', '/run'), 100, new AclIds().idOf);

const sectionOf = (listener: Listener) => String(renderLoadBalancer(loadBalancer([listener]), CONTEXT));

test('Two listeners have the same structure exactly if their sections are the same', (t) => {
  const property = fc.property(nearlyAlike, ([a, b]) => {
    fc.pre(hasSection(a) && hasSection(b));
    const structures = [a, b].map((each) => structureOf(withPlainCheck(each)));
    strictEqual(structures[0] === structures[1], sectionOf(a) === sectionOf(b));
  });
  t.notThrows(() => fc.assert(property, { numRuns: 1_000 }));
});

const INSIDE_TLS = { tls: 'tcp', https: 'http', grpcs: 'grpc' } as const;

/** Checks of members by TLS are inside TLS in any case: HAProxy has the same words for both types. */
function withPlainCheck(listener: Listener): Listener {
  const { tls, monitor } = listener.pool;
  if (tls === undefined || monitor === undefined || monitor.port !== 0) return listener;
  const { type } = monitor;
  const plain = type === 'tls' || type === 'https' || type === 'grpcs' ? INSIDE_TLS[type] : type;
  return { ...listener, pool: { ...listener.pool, monitor: { ...monitor, type: plain } } };
}

test('Members, their states and allowed clients are no part of the structure', (t) => {
  const listener = listenerOf(translated([service()]));
  const other = {
    ...listener,
    allowedCidrs: ['10.0.0.0/8'],
    pool: { ...listener.pool, members: [], whenEmpty: 'keep-last' as const },
  };
  t.is(structureOf(other), structureOf(listener));
});

test('`add server` has the same keywords as the line in the file', (t) => {
  const oldest = capabilitiesOf(parseVersion('3.0.0'));
  const property = fc.property(anyLoadBalancer, (desired) => {
    const listeners = desired.listeners.map((each) => ({ ...each, pool: { ...each.pool, members: [] } }));
    const running = Running.booted([{ ...desired, listeners }], CONTEXT.aclId);
    const added = planLoadBalancer({ key: desired.key, running, before: desired, after: desired })
      .commands.filter(({ kind }) => kind === 'AddServer')
      .map((command) => commandText(command, oldest).replace(/^add server [^/]+\//, ''));
    const lines = [...String(renderLoadBalancer(desired, CONTEXT)).matchAll(/^ {4}server (.*)$/gm)].map(
      ([, line = '']) => line,
    );
    // A draining member has weight 0 in the file and a command for its state; the file has the usual weight once, each
    // command has it.
    const members = desired.listeners
      .filter(hasSection)
      .flatMap(backendsOf)
      .flatMap(({ pool }) => pool.members);
    const weighted = lines.map((line, at) =>
      line.replace(/ id (\d+)(?: weight \d+)?/, ` id $1 weight ${members[at]?.weight}`),
    );
    strictEqual(added.join('\n'), weighted.join('\n'));
  });
  t.notThrows(() => fc.assert(property));
});

test('allowedLines() has at least one line, and no empty line', (t) => {
  const listener = listenerOf(translated([service()]));
  const lines = (count: number) =>
    allowedLines({
      ...listener,
      allowedCidrs: Array.from({ length: count }, (_, at) => `10.0.${at}.0/24`),
    }).map(({ length }) => length);
  t.deepEqual([lines(0), lines(1), lines(40), lines(41), lines(81)], [[1], [1], [40], [40, 1], [40, 40, 1]]);
});

test('allowedLines() of an empty list has an address that no client can have', (t) => {
  const listener = listenerOf(translated([service()]));
  t.deepEqual(allowedLines({ ...listener, allowedCidrs: [] }), [['255.255.255.255/32']]);
  t.deepEqual(allowedLines({ ...listener, family: 'v6', allowedCidrs: [] }), [['::/128']]);
});

test('HAProxy serves listeners of its engine that have an address', (t) => {
  const listener = listenerOf(translated([service()]));
  t.true(isForHaproxy(listener));
  t.false(isForHaproxy({ ...listener, addresses: [] }));
  t.false(isForHaproxy({ ...listener, engine: 'kernel' }));
  t.deepEqual(bindsOf(listener), ['192.0.2.10 80']);
  t.deepEqual(bindsOf({ ...listener, engine: 'kernel' }), []);
});

// Conformance: kube-proxy’s :10256/healthz
test('A check on its own port does not send the PROXY protocol header, a check on the member’s port does', (t) => {
  const annotations = { 'headgate.io/health-monitor': 'tcp', 'headgate.io/proxy-protocol': 'v2' };
  const words = (more: Readonly<Record<string, string>>) => {
    const { pool } = listenerOf(translated([service({ annotations: { ...annotations, ...more } })]));
    const member = {
      name: 'a',
      id: 5,
      address: '10.0.0.1',
      port: 80,
      weight: 16,
      state: 'ready',
      target: '',
    } as const;
    return serverKeywords(pool, member, 16, '/certificates').join(' ');
  };
  t.is(words({}), 'id 5 weight 16 send-proxy-v2 check inter 5000ms rise 2 fall 3 check-send-proxy');
  t.is(
    words({ 'headgate.io/health-monitor-port': '8081' }),
    'id 5 weight 16 send-proxy-v2 check inter 5000ms rise 2 fall 3 port 8081',
  );
  t.is(
    words({ 'headgate.io/health-monitor-port': '80' }),
    'id 5 weight 16 send-proxy-v2 check inter 5000ms rise 2 fall 3 port 80 check-send-proxy',
    'The port is written, but it is the one that gets traffic with the header',
  );
});

test('Another name for which clients need a certificate is another structure: its rows wait for that reload', (t) => {
  const texts = new CertificateTexts();
  const certificate = texts.pair('default/tls', WEB);
  const clients = texts.clients('secret default/ca', AUTHORITY);
  const guarding = (...guarded: readonly string[]): LoadBalancer => {
    const hosts = ['a.example', 'b.example'];
    const sections = hosts.map((name) => ({
      hostname: patternOf(name),
      certificates: [certificate],
      ...{ clients: guarded.includes(name) ? clients : undefined },
    }));
    const tls: Tls = {
      ...{
        certificates: [certificate],
        minVersion: '1.2',
        ciphers: [],
        alpn: [],
        clients: undefined,
        sections,
      },
    };
    const entries = [{ match: matchOf('/'), rule: ruleOf('-') }];
    const routing = hosts.map((name) => hostSection(name, name, { [name]: entries }));
    return gatewayOf({ address: '192.0.2.1', port: 443 }, routing, { tls });
  };
  const structure = (of: LoadBalancer): string => of.listeners.map(structureOf).join();
  for (const [before, after] of [
    [['a.example'], ['b.example']],
    [['a.example'], ['a.example', 'b.example']],
  ] as const) {
    const [old, now] = [guarding(...before), guarding(...after)];
    const running = Running.booted([old], new AclIds().idOf);
    t.is(planLoadBalancer({ key: now.key, running, before: old, after: now }).reload, 'listener-changed');
    t.not(structure(old), structure(now));
  }
});
