import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { LoadBalancers } from '../../../../agent/octavia/load-balancers/load-balancers.ts';
import { CertificateStore } from '../../../../agent/octavia/store/certificate-store.ts';
import { TextStore } from '../../../../agent/octavia/store/text-store.ts';
import { FakeHaproxy } from '../../../support/octavia/fake-parts.ts';
import { silentLog } from '../../../support/values/silent-log.ts';

const text = (listener: string, extra = '') => `frontend ${listener}\n    bind 10.0.0.10:80\n${extra}`;

function start(t: ExecutionContext, haproxy = new FakeHaproxy(), folder = folderOf(t)) {
  const certificates = new CertificateStore(join(folder, 'certs'));
  const calls: string[] = [];
  const loadBalancers = new LoadBalancers({
    texts: new TextStore(join(folder, 'base')),
    certificates,
    haproxyOf: (_, onReplace) => {
      haproxy.onReplace = onReplace;
      return haproxy;
    },
    observers: {
      before: (rows) => calls.push(`before ${rows.map((row) => row.get('pxname'))}`),
      restarted: (listeners) => calls.push(`restarted ${listeners}`),
      forgotten: (listeners) => {
        if (listeners.length > 0) calls.push(`forgotten ${listeners}`);
      },
      pushed: (outcome) => calls.push(outcome),
      served: () => calls.push('served'),
      changed: async () => undefined,
    },
    log: silentLog(),
  });
  return { loadBalancers, haproxy, folder, calls };
}

function folderOf(t: ExecutionContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-load-balancers-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test('A push is counted before another worker runs, and its listeners begin again after it', async (t) => {
  const { loadBalancers, haproxy, calls } = start(t);
  haproxy.rows = [new Map([['pxname', 'one']])];
  await loadBalancers.upload('lb', text('one'));
  await loadBalancers.serve('lb');
  await loadBalancers.upload('lb', text('two'));
  await loadBalancers.serve('lb');
  await loadBalancers.serve('lb');
  t.deepEqual(calls, [
    ...['restarted one', 'served', 'reload'],
    ...['before one', 'restarted two', 'served', 'forgotten one', 'reload'],
    'none',
  ]);
});

test('A load balancer should run from its first order on, also if it fails, until it is stopped', async (t) => {
  const { loadBalancers, folder } = start(t);
  const isWanted = () => loadBalancers.views().map((each) => each.isWanted);
  await loadBalancers.upload('lb', text('one', '# fails\n'));
  t.deepEqual(isWanted(), [false]);
  await t.throwsAsync(loadBalancers.serve('lb'));
  t.deepEqual(isWanted(), [true]);
  const next = start(t, new FakeHaproxy(), folder);
  await next.loadBalancers.restore();
  t.deepEqual(
    next.loadBalancers.views().map((each) => each.isWanted),
    [true],
  );
  await loadBalancers.stop('lb');
  t.deepEqual(isWanted(), [false]);
});

test('A heartbeat is about the text that runs, not about the one that is uploaded', async (t) => {
  const { loadBalancers } = start(t);
  await loadBalancers.upload('lb', text('one'));
  t.deepEqual(await loadBalancers.running(), []);
  await loadBalancers.serve('lb');
  await loadBalancers.upload('lb', text('two'));
  const [running] = await loadBalancers.running();
  t.deepEqual(
    running?.text.listeners.map(({ id }) => id),
    ['one'],
  );
  t.true(loadBalancers.views()[0]?.isBehind);
});

test('A reload that fails leaves the last text running', async (t) => {
  const { loadBalancers, calls } = start(t);
  await loadBalancers.upload('lb', text('one'));
  await loadBalancers.serve('lb');
  await loadBalancers.upload('lb', text('two', '# fails\n'));
  await t.throwsAsync(loadBalancers.serve('lb'), { message: 'cannot bind socket' });
  const [running] = await loadBalancers.running();
  t.deepEqual(
    running?.text.listeners.map(({ id }) => id),
    ['one'],
  );
  t.is(calls.at(-1), 'failed');
});

test('The next agent takes over a worker, also one that runs an older text than the uploaded one', async (t) => {
  const { loadBalancers, haproxy, folder } = start(t);
  await loadBalancers.upload('lb', text('one'));
  await loadBalancers.serve('lb');
  await loadBalancers.upload('lb', text('two'));
  const next = start(t, haproxy, folder);
  await next.loadBalancers.restore();
  t.is(haproxy.runs.length, 1);
  const [running] = await next.loadBalancers.running();
  t.deepEqual(
    running?.text.listeners.map(({ id }) => id),
    ['one'],
  );
  await next.loadBalancers.serve('lb');
  t.deepEqual(haproxy.runs, [text('one'), text('two')]);
});

test('After a reboot the last text that ran is started again', async (t) => {
  const { loadBalancers, folder } = start(t);
  await loadBalancers.upload('lb', text('one'));
  await loadBalancers.serve('lb');
  const next = start(t, new FakeHaproxy(), folder);
  await next.loadBalancers.restore();
  t.deepEqual(next.haproxy.runs, [text('one')]);
});

test('A worker whose text is not known gets the uploaded one', async (t) => {
  const { loadBalancers, haproxy, folder } = start(t);
  await loadBalancers.upload('lb', text('one'));
  haproxy.serve(text('unknown'));
  const next = start(t, haproxy, folder);
  await next.loadBalancers.restore();
  t.deepEqual(haproxy.runs, [text('one')]);
});

test('A text that cannot be started again does not stop the start of the agent', async (t) => {
  const { loadBalancers, folder } = start(t);
  await loadBalancers.upload('lb', text('one', '# fails\n'));
  const next = start(t, new FakeHaproxy(), folder);
  await next.loadBalancers.restore();
  t.deepEqual(await next.loadBalancers.running(), []);
  t.is(next.loadBalancers.text('lb'), text('one', '# fails\n'));
});

test('A text that cannot be stored leaves the old one', async (t) => {
  const { loadBalancers, folder } = start(t);
  await loadBalancers.upload('lb', text('one'));
  // A folder in place of the temporary file, as root may write everywhere.
  mkdirSync(join(folder, 'base/lb/haproxy.cfg.tmp/x'), { recursive: true });
  await t.throwsAsync(loadBalancers.upload('lb', text('two')), { code: 'FILE_WRITE' });
  t.is(loadBalancers.text('lb'), text('one'));
  t.is(readFileSync(join(folder, 'base/lb/haproxy.cfg'), 'utf8'), text('one'));
});

test('A certificate that is deleted is not found, and its file goes with the text that names it', async (t) => {
  const { loadBalancers, folder } = start(t);
  const certs = join(folder, 'certs/lb');
  const file = (name: string) => join(certs, name);
  const there = (name: string) => {
    try {
      return readFileSync(file(name), 'utf8');
    } catch {
      return undefined;
    }
  };
  for (const name of ['a.pem', 'b.pem', 'unused.pem'])
    await loadBalancers.writeCertificate('lb', name, Buffer.from('-----BEGIN'));
  await loadBalancers.writeCertificate('lb', 'list.pem', Buffer.from(`${file('a.pem')}\n${file('b.pem')}\n`));
  await loadBalancers.upload('lb', text('one', `    bind 10.0.0.10:443 ssl crt-list ${file('list.pem')}\n`));
  await loadBalancers.serve('lb');

  await loadBalancers.removeCertificate('lb', 'unused.pem');
  t.is(there('unused.pem'), undefined);
  for (const name of ['a.pem', 'b.pem', 'list.pem']) {
    await loadBalancers.removeCertificate('lb', name);
    t.is(await loadBalancers.readCertificate('lb', name), undefined);
    t.not(there(name), undefined);
  }

  await loadBalancers.writeCertificate('lb', 'a.pem', Buffer.from('-----BEGIN again'));
  t.is(String(await loadBalancers.readCertificate('lb', 'a.pem')), '-----BEGIN again');
  await loadBalancers.upload('lb', text('one'));
  await loadBalancers.serve('lb');
  t.is(there('b.pem'), undefined);
  t.is(there('list.pem'), undefined);
  t.is(there('a.pem'), '-----BEGIN again');
});

test('A certificate has mode 0600', async (t) => {
  const { loadBalancers, folder } = start(t);
  await loadBalancers.writeCertificate('lb', 'a.pem', Buffer.from('PEM'));
  t.is(statSync(join(folder, 'certs/lb/a.pem')).mode & 0o777, 0o600);
});

test('Folders of others in the base folder are no load balancers', async (t) => {
  const { loadBalancers, folder, haproxy } = start(t);
  mkdirSync(join(folder, 'base/vrrp'), { recursive: true });
  writeFileSync(join(folder, 'base/lb.sock'), '');
  await loadBalancers.restore();
  t.deepEqual(loadBalancers.views(), []);
  t.deepEqual(haproxy.runs, []);
});
