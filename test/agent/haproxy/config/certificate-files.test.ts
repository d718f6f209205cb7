import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import {
  writtenAuthorities,
  writtenCertificates,
  writtenCrls,
} from '../../../../agent/certificates/written-certificates.ts';
import { CertificateFiles } from '../../../../agent/haproxy/config/certificate-files.ts';
import type { LoadBalancer } from '../../../../agent/model/load-balancer.ts';
import { service } from '../../../support/values/build.ts';
import { API, AUTHORITY, CRL, configMap, secret, WEB } from '../../../support/values/certificates.ts';
import { poolOf } from '../../../support/values/routes.ts';
import { loadBalancerOf, translated } from '../../../support/values/translated.ts';

const SECRETS = [secret('web-tls', WEB), secret('api-tls', API), secret('next', API)];
const PEMS = new Map(SECRETS.map(({ pair }) => [pair.content?.fingerprint, pair.content?.pem.reveal()]));

/** A load balancer with these certificates, and with client certificates. */
function withTls(certificates: string, secrets = SECRETS): LoadBalancer {
  const annotations = {
    'headgate.io/tls-certificate': certificates,
    'headgate.io/tls-client-certificates': 'required',
    'headgate.io/tls-client-ca': 'clients',
    'headgate.io/tls-client-crl': 'clients',
  };
  return loadBalancerOf(translated([service({ annotations }), configMap('clients'), ...secrets]));
}

async function started(t: ExecutionContext) {
  const parent = await mkdtemp(join(tmpdir(), 'headgate-files-'));
  t.teardown(() => rm(parent, { recursive: true }));
  const folder = join(parent, 'certificates');
  const files = new CertificateFiles({
    folder,
    fileMode: 0o600,
    folderMode: 0o700,
    pems: {
      certificate: (_, fingerprint) => PEMS.get(fingerprint),
      authority: () => AUTHORITY,
      crl: () => CRL,
    },
  });
  return { folder, files, names: async () => (await readdir(folder)).sort() };
}

const CA = /^ca_configmap_default_clients_[0-9a-f]{32}\.crt$/;
const CRL_FILE = /^crl_configmap_default_clients_[0-9a-f]{32}\.crl$/;

ava(
  'write() makes a file for each certificate, authority and CRL, and a list for each listener',
  async (t) => {
    const { folder, files, names } = await started(t);
    await files.write([withTls('web-tls,api-tls')]);
    const [ca = '', crl = '', ...others] = await names();
    t.regex(ca, CA);
    t.regex(crl, CRL_FILE);
    t.is(await readFile(join(folder, crl), 'utf8'), CRL);
    t.deepEqual(others, ['default_api-tls.pem', 'default_web-tls.pem', 'default_web_tcp_80_v4.list']);
    t.is(await readFile(join(folder, 'default_web-tls.pem'), 'utf8'), `${WEB.cert}${WEB.key}`);
    t.is(
      await readFile(join(folder, 'default_web_tcp_80_v4.list'), 'utf8'),
      `${folder}/default_web-tls.pem\n${folder}/default_api-tls.pem\n`,
    );
    t.deepEqual([...writtenCertificates(folder).keys()].sort(), ['default/api-tls', 'default/web-tls']);
    t.deepEqual([...writtenAuthorities(folder).keys()], ['configmap default/clients']);
    t.deepEqual([...writtenCrls(folder).keys()], ['configmap default/clients']);
  },
);

ava('keep() brings back what another process has removed', async (t) => {
  const { folder, files, names } = await started(t);
  await files.write([withTls('web-tls')]);
  const before = await names();
  await rm(folder, { recursive: true });
  await files.keep();
  t.deepEqual(await names(), before);
  await rm(join(folder, 'default_web-tls.pem'));
  await files.keep();
  t.deepEqual(await names(), before);
});

ava('keepOnly() removes the files of others, also those of an earlier agent', async (t) => {
  const { files, names } = await started(t);
  await files.write([withTls('web-tls,api-tls')]);
  await files.keepOnly([withTls('api-tls')]);
  t.deepEqual((await names()).slice(2), ['default_api-tls.pem', 'default_web_tcp_80_v4.list']);
  await files.keepOnly([]);
  t.deepEqual(await names(), []);
});

ava('The certificate for members has a file while a pool has it', async (t) => {
  const { folder, files, names } = await started(t);
  const [certificate] = withTls('web-tls').listeners[0]?.tls?.certificates ?? [];
  const made = poolOf('web', []);
  const tls = { authority: undefined, serverName: '', certificate };
  const pool = {
    ...made,
    listeners: made.listeners.map((each) => ({ ...each, pool: { ...each.pool, tls } })),
  };
  await files.write([pool]);
  await files.keepOnly([pool]);
  t.deepEqual(await names(), ['default_web-tls.pem']);
  t.is(await readFile(join(folder, 'default_web-tls.pem'), 'utf8'), `${WEB.cert}${WEB.key}`);
  await files.keepOnly([made]);
  t.deepEqual(await names(), []);
});

ava('A refused certificate is a problem, and its file gets the served content back', async (t) => {
  const { folder, files } = await started(t);
  const before = withTls('web-tls');
  const after = withTls('web-tls', [secret('web-tls', API)]);
  const [served] = before.listeners[0]?.tls?.certificates ?? [];
  const [refused] = after.listeners[0]?.tls?.certificates ?? [];
  if (served === undefined || refused === undefined) return t.fail();
  await files.write([before]);
  await files.write([after]);
  const content = () => readFile(join(folder, 'default_web-tls.pem'), 'utf8');
  t.is(await content(), `${API.cert}${API.key}`);
  await files.refuse(refused, 'no', served);
  t.is(await content(), `${WEB.cert}${WEB.key}`);
  await files.write([after]);
  t.is(await content(), `${WEB.cert}${WEB.key}`, 'It is not tried again');
  t.deepEqual(
    files.problemsOf(after).map(({ reason, message }) => `${reason}: ${message}`),
    [
      'InvalidCertificate: HAProxy refuses the certificate in Secret "default/web-tls", and uses the one before: no',
    ],
  );
  t.deepEqual(files.problemsOf(before), []);
});

ava('write() reads and writes only the certificate that was renewed', async (t) => {
  const parent = await mkdtemp(join(tmpdir(), 'headgate-files-'));
  t.teardown(() => rm(parent, { recursive: true }));
  const read: string[] = [];
  const files = new CertificateFiles({
    folder: parent,
    fileMode: 0o600,
    folderMode: 0o700,
    pems: {
      certificate: (name, fingerprint) => {
        read.push(name);
        return PEMS.get(fingerprint);
      },
      authority: () => AUTHORITY,
      crl: () => CRL,
    },
  });
  const names = Array.from({ length: 8 }, (_, at) => `tls-${at}`);
  const withRenewed = (renewed: string) =>
    withTls(
      names.join(','),
      names.map((name) => secret(name, name === renewed ? API : WEB)),
    );
  const inode = async (name: string) => (await stat(join(parent, `default_${name}.pem`))).ino;
  await files.write([withRenewed('')]);
  t.is(read.length, names.length);
  const before = await Promise.all(names.map(inode));
  await files.write([withRenewed('tls-7')]);
  t.deepEqual(read.slice(names.length), ['default/tls-7']);
  const after = await Promise.all(names.map(inode));
  t.deepEqual(
    names.filter((_, at) => before[at] !== after[at]),
    ['tls-7'],
  );
});

ava('write() writes a certificate again that keepOnly() has removed', async (t) => {
  const { files, names } = await started(t);
  const loadBalancer = withTls('web-tls');
  await files.write([loadBalancer]);
  await files.keepOnly([]);
  t.deepEqual(await names(), []);
  await files.write([loadBalancer]);
  t.true((await names()).includes('default_web-tls.pem'));
});
