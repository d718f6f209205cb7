// A Gateway with hundreds of certificates at a whole agent: one that is renewed costs two commands and one file.

import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { shown } from '../support/traffic/tls.ts';
import { API, type PemPair, WEB } from '../support/values/certificates.ts';
import { gatewayClassJson, gatewayJson, routeJson } from '../support/values/gateways.ts';

const test = requires(ava, { haproxy: true });

const PORT = 8443;
const [LISTENERS, PER_LISTENER] = [10, 50];
const names = Array.from({ length: LISTENERS * PER_LISTENER }, (_, at) => `tls-${at}`);

const secret = (name: string, { cert, key }: PemPair) => ({
  apiVersion: 'v1',
  kind: 'Secret',
  type: 'kubernetes.io/tls',
  metadata: { namespace: 'default', name },
  stringData: { 'tls.crt': cert, 'tls.key': key },
});

test.serial(
  'Of 500 certificates of a Gateway one is renewed by two commands, and one file is written',
  async (t) => {
    const host = await TestHost.create(t);
    const place = { address: host.address(1), port: PORT };
    const listeners = Array.from({ length: LISTENERS }, (_, at) => ({
      name: `l${at}`,
      port: PORT,
      protocol: 'HTTPS',
      hostname: `*.l${at}.example`,
      tls: {
        certificateRefs: names.slice(at * PER_LISTENER, (at + 1) * PER_LISTENER).map((name) => ({ name })),
      },
    }));
    const addresses = [{ type: 'IPAddress', value: place.address }];
    await host.write('gateway.yaml', [
      gatewayClassJson(),
      gatewayJson('edge', { addresses, listeners }),
      routeJson('all', [{ name: 'edge' }]),
    ]);
    const others = names.filter((name) => name !== 'tls-0');
    await host.write(
      'others.yaml',
      others.map((name) => secret(name, WEB)),
    );
    // The first one of the first listener is for names that no certificate has.
    await host.write('first.yaml', [secret('tls-0', WEB)]);
    const agent = await host.start();
    const served = () =>
      shown(place, { servername: 'other.example', rejectUnauthorized: false }).catch(() => '');
    await host.until('it is served', async () => (await served()) === WEB.cert);

    const output = await readFile(host.paths.log, 'utf8');
    t.deepEqual(
      output.match(/^\[WARNING\].* parsing .*$/gm) ?? [],
      [],
      'HAProxy has nothing to say of its file',
    );
    const folder = host.paths.certificates;
    const inodes = async (): Promise<ReadonlyMap<string, number>> =>
      new Map(
        await Promise.all(
          (await readdir(folder)).map(async (file) => [file, (await stat(join(folder, file))).ino] as const),
        ),
      );
    const counts = async () => {
      const read = await agent.metrics();
      const of = (command: string): number => read('headgate_haproxy_commands_total', { command }) || 0;
      return {
        staged: of('StageCertificate'),
        committed: of('CommitCertificate'),
        added: of('AddToList'),
        reloads: read('headgate_haproxy_reloads_total'),
      };
    };
    const [before, files] = [await counts(), await inodes()];
    t.true(files.size > names.length);
    await host.write('first.yaml', [secret('tls-0', API)]);
    await host.until('the next one is served', async () => (await served()) === API.cert);
    // It has two lines: one for its own names, and one for those of no certificate.
    const lines = 2;
    t.deepEqual(await counts(), {
      ...before,
      staged: before.staged + lines,
      committed: before.committed + lines,
    });
    const after = await inodes();
    const changed = [...after].filter(([file, inode]) => files.get(file) !== inode).map(([file]) => file);
    t.deepEqual(
      changed.map((file) => file.replace(/\+.*/, '')),
      Array(lines).fill('default_tls-0'),
    );
  },
);
