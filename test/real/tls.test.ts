// TLS that the load balancer ends: real HAProxy, real handshakes, whole agents.

import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { ConnectionOptions } from 'node:tls';
import ava, { type ExecutionContext } from 'ava';
import { showProc } from '../../agent/haproxy/socket/master.ts';
import { bootId } from '../../agent/host/boot-id.ts';
import { requires } from '../support/basics/requirements.ts';
import { startStarter } from '../support/haproxy/haproxy-starter.ts';
import { processesOf, signal, TestHost } from '../support/host/agent.ts';
import {
  Authority,
  askInTls,
  base64,
  configMap,
  echoOf,
  type Handshake,
  handshake,
  shown,
  startEcho,
  TlsLoad,
  tlsSecret,
} from '../support/traffic/tls.ts';
import { ask, type Place } from '../support/traffic/traffic.ts';
import { type Json, MEMBER_PORT, webObjects } from '../support/values/service-objects.ts';

const test = requires(ava, { haproxy: true, programs: ['openssl'] });

test.serial(
  'A Service in mode https serves TLS with the certificate of its Secret, also HTTP/2',
  async (t) => {
    const { host, place, trust } = await served(t);
    await startEcho(t, host.address(11));
    await host.serve({ annotations: { mode: 'https', 'tls-certificate': 'web-tls' } });
    const agent = await host.start();
    const { headers } = echoOf(await askInTls(place, trust));
    t.is(headers['x-forwarded-proto'], 'https');
    t.is(headers['x-forwarded-for'], host.address(99));
    const { alpn, protocol } = await ended(handshake(place, { ...trust, ALPNProtocols: ['h2', 'http/1.1'] }));
    t.is(alpn, 'h2');
    t.is(protocol, 'TLSv1.3');
    await t.throwsAsync(handshake(place, { ...trust, maxVersion: 'TLSv1.1', minVersion: 'TLSv1' }));
    await t.throwsAsync(ask(place), undefined, 'Nothing is served without TLS');
    const read = await agent.metrics();
    const expiry = read('headgate_certificate_expiry_seconds', { namespace: 'default', secret: 'web-tls' });
    t.true(expiry > Date.now() / 1000 + 29 * 86_400 && expiry < Date.now() / 1000 + 31 * 86_400);
  },
);

test.serial(
  'A new content of the Secret is served without a reload and without a failed handshake',
  async (t) => {
    const { host, place, trust, authority } = await served(t);
    await startEcho(t, host.address(11));
    await host.serve({ annotations: { mode: 'https', 'tls-certificate': 'web-tls' } });
    const agent = await host.start();
    const worker = await host.worker();
    const load = new TlsLoad(place, trust);
    const seen = new Set([(await ended(handshake(place, trust))).fingerprint]);
    for (let turn = 0; turn < 8; turn++) {
      await load.more(20);
      await host.write('secret.yaml', [
        tlsSecret('web-tls', await authority.issue({ names: ['web.example'] })),
      ]);
      await host.soon('another certificate is served', async () => {
        const { fingerprint } = await ended(handshake(place, trust));
        return !seen.has(fingerprint) && seen.add(fingerprint).size > 0;
      });
    }
    await load.stop();
    t.deepEqual(load.failures, []);
    t.true(load.requests > 160);
    t.is(await host.worker(), worker);
    t.is((await agent.metrics())('headgate_haproxy_reloads_total'), 0);
    t.is(seen.size, 9);
  },
);

test.serial('Certificates survive a restart of the agent and the death of HAProxy', async (t) => {
  const { host, place, trust, authority } = await served(t);
  await startEcho(t, host.address(11));
  await host.serve({ annotations: { mode: 'https', 'tls-certificate': 'web-tls' } });
  const first = await host.start();
  const worker = await host.worker();
  await first.kill();
  const load = new TlsLoad(place, trust);
  await load.more(10);
  await host.start();
  await load.more(10);
  await load.stop();
  t.deepEqual(load.failures, []);
  t.is(await host.worker(), worker, 'The new agent has adopted it as it is');
  const next = await authority.issue({ names: ['web.example'] });
  await host.write('secret.yaml', [tlsSecret('web-tls', next)]);
  await host.soon('the next certificate is served', async () => (await shown(place, trust)) === next.cert);
  await host.killHaproxy(worker);
  await host.until('HAProxy is back with it', async () => (await shown(place, trust)) === next.cert);
});

test.serial('A certificate is renewed through the master if the admin socket was removed', async (t) => {
  const { host, place, trust, authority } = await served(t);
  await startEcho(t, host.address(11));
  await host.serve({ annotations: { mode: 'https', 'tls-certificate': 'web-tls' } });
  const first = await host.start();
  const before = await reloadsOf(host);
  await first.kill();
  await rm(host.paths.adminSocket);
  await host.start();
  const next = await authority.issue({ names: ['web.example'] });
  await host.write('secret.yaml', [tlsSecret('web-tls', next)]);
  await host.soon('it is served', async () => (await shown(place, trust)) === next.cert);
  t.is(await reloadsOf(host), before);
});

/** A master that other clients ask may refuse one more. */
async function reloadsOf(host: TestHost): Promise<number> {
  let reloads = Number.NaN;
  await host.soon('the master answers', async () => {
    reloads = (await showProc(host.paths.masterSocket).catch(() => undefined))?.master.reloads ?? Number.NaN;
    return !Number.isNaN(reloads);
  });
  return reloads;
}

test.serial(
  'An agent that was killed between the file and the commit commits at its next start',
  async (t) => {
    const { host, place, trust, authority } = await served(t);
    await startEcho(t, host.address(11));
    await host.serve({ annotations: { mode: 'https', 'tls-certificate': 'web-tls' } });
    const first = await host.start();
    const worker = await host.worker();
    const before = await shown(place, trust);
    await first.kill();
    // The state that such an agent leaves behind: file and Secret are new, the worker has the old certificate.
    const next = await authority.issue({ names: ['web.example'] });
    await host.write('secret.yaml', [tlsSecret('web-tls', next)]);
    const [file = ''] = (await readdir(host.paths.certificates)).filter((name) => name.endsWith('.pem'));
    await rm(join(host.paths.certificates, file));
    await writeFile(join(host.paths.certificates, file), `${next.cert}${next.key}`, { mode: 0o600 });
    t.is(await shown(place, trust), before);
    await host.start();
    await host.soon('the worker has the new one', async () => (await shown(place, trust)) === next.cert);
    t.is(await host.worker(), worker);
  },
);

test.serial(
  'A client gets the certificate with the name that it asks for, otherwise the first one',
  async (t) => {
    const { host, place, trust, authority } = await served(t);
    await startEcho(t, host.address(11));
    const [wild, rsa, other] = await Promise.all([
      authority.issue({ names: ['*.shop.example'] }),
      authority.issue({ names: ['web.example'], rsaBits: 2048 }),
      authority.issue({ names: ['pay.shop.example'] }),
    ]);
    await host.write('more.yaml', [tlsSecret('wild', wild), tlsSecret('rsa', rsa)]);
    await host.serve({ annotations: { mode: 'https', 'tls-certificate': 'web-tls,wild,rsa' } });
    await host.start();
    const worker = await host.worker();
    const first = await shown(place, trust);
    const untrusting = { ...trust, checkServerIdentity: () => undefined };
    const shownFor = (servername: string) => shown(place, { ...untrusting, servername });
    t.is(await shownFor('a.shop.example'), wild.cert);
    t.is(await shownFor('a.b.shop.example'), first, 'A wildcard is for one label');
    t.is(await shownFor('stranger.example'), first);
    t.is(await shown(place, { ...untrusting, servername: '' }), first, 'Without a name');
    const onlyRsa = { ...untrusting, sigalgs: 'RSA-PSS+SHA256:RSA+SHA256', maxVersion: 'TLSv1.2' };
    t.is(await shown(place, onlyRsa), rsa.cert);

    await host.write('other.yaml', [tlsSecret('pay', other)]);
    await host.serve({ annotations: { mode: 'https', 'tls-certificate': 'web-tls,wild,rsa,pay' } });
    await host.soon('a certificate more', async () => (await shownFor('pay.shop.example')) === other.cert);
    await host.serve({ annotations: { mode: 'https', 'tls-certificate': 'web-tls,rsa' } });
    await host.soon('two less', async () => (await shownFor('a.shop.example')) === first);
    t.is(await host.worker(), worker, 'Without a reload');
    await host.killHaproxy(worker);
    await host.until('HAProxy is back', async () => (await shown(place, trust)) === first);
    t.is(await shownFor('a.shop.example'), first, 'The list on disk has no more than HAProxy had');
    t.is(await shown(place, onlyRsa), rsa.cert);
  },
);

test.serial(
  'A port without a certificate is not served, and is served when its Secret arrives',
  async (t) => {
    const { host, place, trust, authority } = await served(t);
    await startEcho(t, host.address(11));
    await host.serve({ annotations: { mode: 'https', 'tls-certificate': 'late' } });
    await host.serve({ name: 'plain', address: host.address(2) });
    await host.start();
    t.is((await askHttp({ ...place, address: host.address(2) })).status, 200);
    await t.throwsAsync(ask(place));
    const { verdict, reasons } = await host.why();
    t.is(verdict, 'not served');
    t.true(
      reasons.includes(
        'Cannot use Secret "default/late" for TLS on port 17080: there is no Secret of this name and of type kubernetes.io/tls',
      ),
    );
    const late = await authority.issue({ names: ['web.example'] });
    await host.write('late.yaml', [tlsSecret('late', late)]);
    await host.soon('it is served', async () => (await shown(place, trust)) === late.cert);

    await host.remove('late.yaml');
    const missing =
      'there is no Secret of this name and of type kubernetes.io/tls; the certificate that it had stays in use';
    await host.soon('its loss is reported', async () =>
      (await host.why()).reasons.some((each) => each.includes(missing)),
    );
    t.is(await shown(place, trust), late.cert);
  },
);

const UNUSABLE: readonly (readonly [
  what: string,
  data: (authority: Authority) => Promise<Json>,
  fault: string,
])[] = [
  [
    'the key of another certificate',
    async (authority) => mixed(authority),
    'tls.key is not the key of the first',
  ],
  [
    'no PEM',
    async () => ({ 'tls.crt': base64('rubbish'), 'tls.key': base64('secret-word') }),
    'tls.crt has no certificate',
  ],
  [
    'a size of a megabyte',
    async () => ({ 'tls.crt': 'A'.repeat(1_000_000), 'tls.key': base64('x') }),
    'tls.crt and tls.key have more than 65536 bytes',
  ],
  [
    'no key',
    async (authority) => ({ 'tls.crt': base64((await authority.issue({ names: ['a'] })).cert) }),
    'it has no tls.key',
  ],
];
for (const [what, data, fault] of UNUSABLE)
  test.serial(
    `A Secret with ${what} is its Service's problem, and its last certificate stays in use`,
    async (t) => {
      const { host, place, trust, authority } = await served(t);
      await startEcho(t, host.address(11));
      await host.serve({ annotations: { mode: 'https', 'tls-certificate': 'web-tls' } });
      const agent = await host.start();
      const before = await shown(place, trust);
      const bad = { ...tlsSecret('web-tls', { cert: '', key: '' }), data: await data(authority) };
      await host.write('secret.yaml', [bad]);
      await host.soon('the fault is reported', async () =>
        (await host.why()).reasons.some((each) => each.includes(fault)),
      );
      t.is(await shown(place, trust), before);
      t.is((await agent.metrics())('headgate_problems', { reason: 'InvalidCertificate' }), 1);
      const next = await authority.issue({ names: ['web.example'] });
      await host.write('secret.yaml', [tlsSecret('web-tls', next)]);
      await host.soon('a good one is served', async () => (await shown(place, trust)) === next.cert);
      t.deepEqual((await host.why()).problems, []);
    },
  );

test.serial('A certificate that is too long for a command is renewed by a reload', async (t) => {
  const { host, place, trust, authority } = await served(t);
  await startEcho(t, host.address(11));
  await host.serve({ annotations: { mode: 'https', 'tls-certificate': 'web-tls' } });
  const agent = await host.start();
  const names = ['web.example', ...Array.from({ length: 600 }, (_, at) => `name-${at}.web.example`)];
  const long = await authority.issue({ names });
  t.true(long.cert.length > 12_288);
  await host.write('secret.yaml', [tlsSecret('web-tls', long)]);
  await host.soon('it is served', async () => (await shown(place, trust)) === long.cert);
  const reloads = async () =>
    (await agent.metrics())('headgate_haproxy_reloads_total', { reason: 'certificate-too-long' });
  // The new worker serves a moment before the reload is over.
  await host.until('the reload is counted', async () => (await reloads()) === 1);
  const next = await authority.issue({ names: ['web.example'] });
  await host.write('secret.yaml', [tlsSecret('web-tls', next)]);
  await host.soon('a short one is served', async () => (await shown(place, trust)) === next.cert);
  t.is((await agent.metrics())('headgate_haproxy_reloads_total'), 1);
});

test.serial('An expired certificate is served and reported', async (t) => {
  const { host, place, authority, trust } = await served(t);
  await startEcho(t, host.address(11));
  const expired = await authority.issue({ names: ['web.example'], days: -1 });
  await host.write('secret.yaml', [tlsSecret('web-tls', expired)]);
  await host.serve({ annotations: { mode: 'https', 'tls-certificate': 'web-tls' } });
  await host.start();
  t.is(await shown(place, { ...trust, rejectUnauthorized: false }), expired.cert);
  const { reasons, verdict } = await host.why();
  t.is(verdict, 'served in part', 'clients refuse it');
  t.true(reasons.some((each) => each.includes('for port 17080 has expired')));
});

test.serial('In tcp mode the bytes inside TLS reach the member', async (t) => {
  const { host, place, trust } = await served(t);
  await startEcho(t, host.address(11));
  await host.serve({
    annotations: { 'tls-certificate': 'web-tls', 'tls-min-version': '1.3', 'tls-alpn': 'imap' },
  });
  await host.start();
  const { headers } = echoOf(await askInTls(place, trust));
  t.is(headers['x-forwarded-proto'], undefined);
  t.is((await ended(handshake(place, { ...trust, ALPNProtocols: ['imap'] }))).alpn, 'imap');
  await t.throwsAsync(handshake(place, { ...trust, maxVersion: 'TLSv1.2' }));
});

test.serial('Ports beside the TLS ports are served without TLS', async (t) => {
  const { host, place, trust } = await served(t);
  await startEcho(t, host.address(11));
  const ports = [
    { name: 'http', port: 17_081, targetPort: MEMBER_PORT },
    { name: 'https', port: 17_080, targetPort: MEMBER_PORT },
  ];
  const annotations = { mode: 'http', 'tls-certificate': 'web-tls', 'tls-ports': 'https' };
  const [service = {}, slice = {}] = webObjects({
    address: host.address(1),
    members: [host.address(11)],
    annotations,
    spec: { ports },
  });
  const named = ['http', 'https'].map((name) => ({ name, port: MEMBER_PORT, protocol: 'TCP' }));
  await host.write('web.yaml', [service, { ...slice, ports: named }]);
  await host.start();
  t.is((await askHttp({ ...place, port: 17_081 })).status, 200);
  t.true((await askInTls(place, trust)).startsWith('HTTP/1.1 200'));
});

test.serial(
  'After a reboot HAProxy serves the ports without TLS at once, and TLS when the agent is there',
  async (t) => {
    const { host, place, trust } = await served(t, ['--haproxy-supervisor', 'external']);
    await startEcho(t, host.address(11));
    await host.serve({ annotations: { mode: 'https', 'tls-certificate': 'web-tls' } });
    await host.serve({ name: 'plain', address: host.address(2) });
    await startStarter(host);
    const agent = await host.start();
    t.true((await askInTls(place, trust)).startsWith('HTTP/1.1 200'));
    await agent.stop();
    for (const pid of processesOf(host.directory)) signal(pid, 'SIGKILL');
    // The disk has the file of the boot before, and the memory nothing.
    await rm(host.runtimeDir, { recursive: true });
    const ofLastBoot = (await host.config())
      .replaceAll(bootId(), 'f'.repeat(32))
      .replace(/description headgate:\w+/, `description headgate:${'f'.repeat(32)}`);
    await writeFile(host.paths.config, ofLastBoot);
    await mkdir(dirname(host.paths.adminSocket), { recursive: true });

    await startStarter(host);
    const plain = { ...place, address: host.address(2) };
    await host.until('HAProxy serves without the agent', async () => (await askHttp(plain)).status === 200);
    await t.throwsAsync(handshake(place, trust), { message: /ECONNREFUSED/ });
    await host.start();
    await host.soon('TLS is served', async () => (await askInTls(place, trust)).startsWith('HTTP/1.1 200'));
  },
);

test.serial('Clients must have a certificate of the authority that the Service names', async (t) => {
  const { host, place, trust } = await served(t);
  await startEcho(t, host.address(11));
  const clients = await Authority.create(t, 'Clients');
  const strangers = await Authority.create(t, 'Strangers');
  const [own, foreign] = await Promise.all(
    [clients, strangers].map((each) => each.issue({ names: ['ann'] })),
  );
  const annotations = {
    mode: 'https',
    'tls-certificate': 'web-tls',
    'tls-client-certificates': 'required',
    'tls-client-ca': 'clients',
  };
  await host.serve({ annotations });
  await host.start();
  await t.throwsAsync(askInTls(place, { ...trust, ...own }), undefined, 'Not served without the authority');
  t.regex(
    (await host.why()).reasons.join(),
    /Cannot use ConfigMap "default\/clients" for TLS .*: it does not exist/,
  );
  await host.write('clients.yaml', [configMap('clients', clients.cert)]);
  await host.soon('the client is served', async () => (await askInTls(place, { ...trust, ...own })) !== '');
  const spoof = 'GET / HTTP/1.1\r\nHost: a\r\nX-SSL-Client-CN: root\r\nConnection: close\r\n\r\n';
  const { headers } = echoOf(await askInTls(place, { ...trust, ...own }, spoof));
  t.is(headers['x-ssl-client-cn'], 'ann');
  t.is(headers['x-ssl-client-verify'], '0');
  await t.throwsAsync(askInTls(place, trust), undefined, 'Without a certificate');
  await t.throwsAsync(askInTls(place, { ...trust, ...foreign }), undefined, 'With one of another authority');

  await host.serve({ annotations: { ...annotations, 'tls-client-certificates': 'optional' } });
  await host.soon('a client without one is served', async () => (await askInTls(place, trust)) !== '');
  t.is(echoOf(await askInTls(place, trust, spoof)).headers['x-ssl-client-cn'], undefined);
  await t.throwsAsync(askInTls(place, { ...trust, ...foreign }));
  // The authorities change.
  await host.write('clients.yaml', [configMap('clients', strangers.cert)]);
  await host.soon('others are served', async () => (await askInTls(place, { ...trust, ...foreign })) !== '');
});

test.serial('A client whose certificate is revoked is refused, and others are served', async (t) => {
  const { host, place, trust } = await served(t);
  await startEcho(t, host.address(11));
  const clients = await Authority.create(t, 'Clients');
  const ann = await clients.issue({ names: ['ann'] });
  const bob = await clients.issue({ names: ['bob'] });
  const isServed = (client: ConnectionOptions): Promise<boolean> =>
    askInTls(place, { ...trust, ...client }).then(
      () => true,
      () => false,
    );
  const reasons = async (): Promise<string> => (await host.why()).reasons.join();
  const list = async (text: string): Promise<void> =>
    host.write('revoked.yaml', [configMap('revoked', text, 'ca.crl')]);
  await host.write('clients.yaml', [configMap('clients', clients.cert)]);
  await host.serve({
    annotations: {
      mode: 'https',
      'tls-certificate': 'web-tls',
      'tls-client-certificates': 'required',
      'tls-client-ca': 'clients',
      'tls-client-crl': 'revoked',
    },
  });
  const agent = await host.start();
  t.false(await isServed(ann), 'Not served without the revocation list');
  t.regex(await reasons(), /Cannot use ConfigMap "default\/revoked" for TLS .*: it does not exist/);

  await list(await clients.revoke([]));
  await host.soon('both are served', async () => (await isServed(ann)) && (await isServed(bob)));
  const resuming = await resumption(place, { ...trust, ...ann });
  t.false(await isResumed(place, resuming), 'No session counts where clients show certificates');
  await list(await clients.revoke([ann]));
  // The last worker takes connections until its grace period ends.
  await host.soon('ann is refused', async () => !(await isServed(ann)) && (await isServed(bob)));
  await host.soon('she cannot resume a session', async () => !(await isServed(resuming)));

  await list('rubbish');
  await host.soon('the fault is reported', async () =>
    (await reasons()).includes('ca.crl has no revocation list in PEM; the revocation list that it had stays'),
  );
  t.false(await isServed(ann));
  t.true(await isServed(bob));

  await list(unreadable(await clients.revoke([])));
  await host.until("HAProxy's refusal is reported", async () =>
    /HAProxy rejects .*crl_configmap_default_revoked/.test(await reasons()),
  );
  t.false(await isServed(ann));
  t.true(await isServed(bob));

  await list(await clients.revoke([bob]));
  await host.soon('bob is refused', async () => !(await isServed(bob)) && (await isServed(ann)));

  await list(await clients.revoke([], '20200201000000Z'));
  await host.soon('all are refused', async () => !(await isServed(ann)) && !(await isServed(bob)));
  t.regex(await reasons(), /The revocation list in ConfigMap "default\/revoked" .* has expired/);
  t.is((await agent.metrics())('headgate_problems', { reason: 'CertificateExpired' }), 1);
});

test.serial(
  'Members with TLS are verified by authority and name, also those that are added at runtime',
  async (t) => {
    const { host, place, trust, authority } = await served(t);
    const [good, other] = await Promise.all(
      ['shop.internal', 'other.internal'].map((name) => authority.issue({ names: [name] })),
    );
    const stranger = await (await Authority.create(t, 'Strangers')).issue({ names: ['shop.internal'] });
    await startEcho(t, host.address(11), good);
    await startEcho(t, host.address(12), other);
    await startEcho(t, host.address(13), stranger);
    await host.write('ca.yaml', [configMap('internal', authority.cert)]);
    const annotations = {
      mode: 'https',
      'tls-certificate': 'web-tls',
      'member-tls': 'verified',
      'member-tls-ca': 'internal',
      'member-tls-name': 'shop.internal',
    };
    await host.serve({ members: [], annotations });
    await host.start();
    const worker = await host.worker();
    await host.serve({ members: [host.address(11)], annotations });
    await host.soon('it answers', async () => (await askInTls(place, trust)) !== '');
    t.is(echoOf(await askInTls(place, trust)).servername, 'shop.internal');
    for (const last of [12, 13]) {
      await host.serve({ members: [host.address(last)], annotations });
      await host.soon('it is refused', async () => {
        const answer = await askInTls(place, trust).catch(({ message }: Error) => message);
        return answer.includes('503');
      });
    }
    t.is(await host.worker(), worker, 'Without a reload');
    await host.serve({
      members: [host.address(13)],
      annotations: { ...annotations, 'member-tls': 'unverified' },
    });
    await host.soon('it is not verified', async () => (await askInTls(place, trust)) !== '');
    const monitored = { ...annotations, 'health-monitor': 'http', 'health-monitor-interval': '500ms' };
    await host.serve({ members: [host.address(11)], annotations: monitored });
    await host.until(
      'its check succeeds inside TLS',
      async () => (await host.why()).listeners[0]?.status === 'ONLINE',
    );
  },
);

test.serial(
  'A host without a cluster takes certificates from files of the settings, and follows them',
  async (t) => {
    const authority = await Authority.create(t);
    const [one, two, three] = await Promise.all(
      [1, 2, 3].map(() => authority.issue({ names: ['web.example'] })),
    );
    if (one === undefined || two === undefined || three === undefined) throw new Error('No certificates');
    const folder = await mkdtemp(join(tmpdir(), 'hg-pem-'));
    t.teardown(() => rm(folder, { recursive: true }));
    const file = join(folder, 'web.pem');
    const live = join(folder, 'live');
    await mkdir(live);
    await writeFile(file, `${one.cert}${one.key}`);
    await writeFile(join(live, 'fullchain.pem'), two.cert);
    await writeFile(join(live, 'privkey.pem'), two.key);
    const flags = ['--certificates', `default/web=${file}`, '--certificates', `default/live=${live}`];
    const host = await TestHost.create(t, { flags });
    await startEcho(t, host.address(11));
    await host.serve({ annotations: { mode: 'https', 'tls-certificate': 'web' } });
    await host.serve({
      name: 'live',
      address: host.address(2),
      annotations: { mode: 'https', 'tls-certificate': 'live' },
    });
    await host.start();
    const place = { ...host.place(), from: host.address(99) };
    const trust = { ca: authority.cert, servername: 'web.example' };
    t.is(await shown(place, trust), one.cert);
    t.is(await shown({ ...place, address: host.address(2) }, trust), two.cert);
    await writeFile(file, `${three.key}${three.cert}`);
    await host.soon('the new one is served', async () => (await shown(place, trust)) === three.cert);
    await rm(file);
    await host.soon('its loss is reported', async () =>
      (await host.why()).reasons.join().includes('it has no tls.crt'),
    );
    t.is(await shown(place, trust), three.cert);
  },
);

test.serial(
  'With the landing a new Service with TLS is served at once, and moves without a failed handshake',
  async (t) => {
    const { host, place, trust, authority } = await served(t, ['--landing-rest', '2s'], true);
    await startEcho(t, host.address(11));
    await host.serve({ name: 'first', address: host.address(2) });
    await host.start();
    await host.serve({ annotations: { mode: 'https', 'tls-certificate': 'web-tls' } });
    await host.soon('it is served', async () => (await askInTls(place, trust)) !== '');
    t.is((await host.status()).haproxy.landed, 1);
    const next = await authority.issue({ names: ['web.example'] });
    await host.write('secret.yaml', [tlsSecret('web-tls', next)]);
    await host.soon('the next one is served', async () => (await shown(place, trust)) === next.cert);
    const load = new TlsLoad(place, trust);
    await host.until('it moves', async () => (await host.status()).haproxy.landed === 0);
    await load.more(50);
    await load.stop();
    // Each of the four clients may wait in the socket that is closed.
    const resets = load.failures.filter((failure) => failure.includes('ECONNRESET'));
    const allowed = (await keepsWaiting()) ? 0 : 4;
    t.true(resets.length <= allowed, `${resets.length} resets`);
    t.deepEqual(
      load.failures.filter((failure) => !resets.includes(failure)),
      [],
    );
    t.is(await shown(place, trust), next.cert);
  },
);

/** Whether the kernel gives connections that wait in a closed socket to another one; the package sets that. */
async function keepsWaiting(): Promise<boolean> {
  const value = await readFile('/proc/sys/net/ipv4/tcp_migrate_req', 'utf8').catch(() => '0');
  return value.trim() === '1';
}

test.serial(
  'No key or certificate reaches a log, a message, a metric, a disk, or a file for others',
  async (t) => {
    const { host, place, trust, authority } = await served(t);
    await startEcho(t, host.address(11));
    const { cert, key } = await authority.issue({ names: ['web.example'] });
    await host.write('secret.yaml', [tlsSecret('web-tls', { cert, key })]);
    await host.serve({ annotations: { mode: 'https', 'tls-certificate': 'web-tls' } });
    const agent = await host.start(['--log-level', 'debug']);
    const next = await authority.issue({ names: ['web.example'] });
    await host.write('secret.yaml', [tlsSecret('web-tls', next)]);
    await host.soon('it is rotated', async () => (await shown(place, trust)) === next.cert);
    const half = await authority.issue({ names: ['web.example'] });
    const [service = {}] = webObjects({ name: 'more', address: host.address(3), members: [] });
    await host.write(
      'half.yaml',
      `${JSON.stringify(service)}\n---\n${JSON.stringify(tlsSecret('half', half))}\n---\nx: [`,
    );
    await host.soon(
      'half of a file counts',
      async () => (await host.why('default/more')).verdict !== 'not found',
    );
    await host.command('render', ['--output', join(host.directory, 'rendered')]);
    const shownTexts = [
      agent.text,
      JSON.stringify([await host.why(), await host.status()]),
      (await agent.get('/metrics')).text,
      await host.command('why', ['default/web']).then(({ stdout }) => stdout),
    ];
    // The snapshots of manifests are written within seconds.
    await agent.stop();
    for (const folder of [host.stateDir, join(host.directory, 'rendered')])
      for (const file of await readdir(folder, { recursive: true, withFileTypes: true }))
        if (file.isFile()) shownTexts.push(await readFile(join(file.parentPath, file.name), 'latin1'));
    const secrets = [key, next.key, half.key].flatMap((pem) => [
      pem.split('\n')[1] ?? '',
      base64(pem).slice(100, 160),
    ]);
    for (const text of shownTexts) for (const secret of secrets) t.false(text.includes(secret));
    t.is((await stat(host.paths.certificates)).mode & 0o777, 0o700);
    for (const name of await readdir(host.paths.certificates))
      t.is((await stat(join(host.paths.certificates, name))).mode & 0o777, 0o600);
  },
);

/** A host with a Secret default/web-tls for web.example, and a client that trusts its authority. */
async function served(t: ExecutionContext, flags: readonly string[] = [], landing = false) {
  const host = await TestHost.create(t, { flags, landing });
  const authority = await Authority.create(t);
  await host.write('secret.yaml', [tlsSecret('web-tls', await authority.issue({ names: ['web.example'] }))]);
  const place = { ...host.place(), from: host.address(99) };
  return { host, authority, place, trust: { ca: authority.cert, servername: 'web.example' } };
}

/** A revocation list with the frame of a good one, and a signature algorithm that OpenSSL cannot read. */
function unreadable(list: string): string {
  const [begin = '', ...lines] = list.trim().split('\n');
  const end = lines.pop() ?? '';
  const der = Buffer.from(lines.join(''), 'base64');
  const ecdsaWithSha256 = Buffer.from('06082a8648ce3d040302', 'hex');
  der[der.indexOf(ecdsaWithSha256)] = 0x05;
  return `${begin}\n${der.toString('base64')}\n${end}\n`;
}

/** Options of a client that resumes the session of a handshake with these options. */
async function resumption(place: Place, options: ConnectionOptions): Promise<ConnectionOptions> {
  // With TLS 1.3 a session arrives after the handshake.
  const older = { ...options, maxVersion: 'TLSv1.2' as const };
  const { socket } = await handshake(place, older);
  const session = socket.getSession();
  socket.destroy();
  if (session === undefined) throw new Error('No session');
  return { ...older, session };
}

async function isResumed(place: Place, options: ConnectionOptions): Promise<boolean> {
  const { socket } = await handshake(place, options);
  const isReused = socket.isSessionReused();
  socket.destroy();
  return isReused;
}

async function ended(making: Promise<Handshake>): Promise<Handshake> {
  const made = await making;
  made.socket.destroy();
  return made;
}

async function mixed(authority: Authority): Promise<Json> {
  const [one, other] = await Promise.all(['a', 'b'].map((name) => authority.issue({ names: [name] })));
  return { 'tls.crt': base64(one?.cert ?? ''), 'tls.key': base64(other?.key ?? '') };
}

/** Without TLS. */
function askHttp({ address, port, from }: Place): Promise<{ readonly status: number }> {
  return new Promise((resolve, reject) => {
    const own = from === undefined ? {} : { localAddress: from };
    const request = get({ host: address, port, agent: false, timeout: 5_000, ...own }, (response) => {
      response.resume();
      resolve({ status: response.statusCode ?? 0 });
    });
    request.once('error', reject);
  });
}
