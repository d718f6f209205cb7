// A real authoritative name server (Knot) on a port of the loopback, with one zone that is changed by RFC 2136 with a TSIG key.
// It ends with the test.

import { spawn } from 'node:child_process';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { freePort } from '../basics/free-port.ts';
import { until } from '../basics/until.ts';

export const ZONE = 'headgate.test';
/** The name of the key is that of external-dns. */
export const TSIG = {
  name: 'external-dns',
  algorithm: 'hmac-sha256',
  secret: Buffer.alloc(32, 7).toString('base64'),
};

const RECORDS = `$ORIGIN ${ZONE}.
$TTL 60
@ SOA ns.${ZONE}. admin.${ZONE}. 1 60 60 600 1
@ NS ns.${ZONE}.
ns A 127.0.0.1
`;

export class NameServer {
  readonly port: number;
  readonly #resolver = new Resolver({ timeout: 2_000, tries: 2 });

  static async start(t: Pick<ExecutionContext<unknown>, 'teardown'>): Promise<NameServer> {
    const directory = await mkdtemp(join(tmpdir(), 'hg-knot-'));
    const port = await freePort();
    const [zoneFile, configFile] = [join(directory, 'zone'), join(directory, 'knot.conf')];
    await writeFile(zoneFile, RECORDS);
    await writeFile(
      configFile,
      `
server:
  rundir: ${directory}
  listen: 127.0.0.1@${port}
database:
  storage: ${directory}
key:
  - id: ${TSIG.name}
    algorithm: ${TSIG.algorithm}
    secret: ${TSIG.secret}
acl:
  - id: change
    key: ${TSIG.name}
    action: [transfer, update]
zone:
  - domain: ${ZONE}
    file: ${zoneFile}
    acl: change
    zonefile-sync: -1
    journal-content: none
`,
    );
    const child = spawn('knotd', ['-c', configFile], { stdio: 'ignore' });
    const ended = once(child, 'close');
    t.teardown(async () => {
      child.kill('SIGKILL');
      await ended;
      await rm(directory, { recursive: true, force: true });
    });
    const server = new NameServer(port);
    await until('Knot answers', async () => (await server.addresses(`ns.${ZONE}`)).length === 1);
    return server;
  }

  private constructor(port: number) {
    this.port = port;
    this.#resolver.setServers([`127.0.0.1:${port}`]);
  }

  /** A and AAAA records, sorted; none if there is no such name. */
  async addresses(name: string): Promise<readonly string[]> {
    const found = await Promise.all([
      this.#resolver.resolve4(name).catch(() => []),
      this.#resolver.resolve6(name).catch(() => []),
    ]);
    return found.flat().sort();
  }
}
