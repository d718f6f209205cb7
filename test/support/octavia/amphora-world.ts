// An amphora whose parts are in memory, with its REST API on a free port of loopback and real certificates.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { parseSocketAddress } from '../../../agent/base/socket-address.ts';
import { LoadBalancers, type PushOutcome } from '../../../agent/octavia/load-balancers/load-balancers.ts';
import { machineDetails } from '../../../agent/octavia/machine/machine.ts';
import type { Amphora } from '../../../agent/octavia/rest/amphora.ts';
import { readCredentials, replaceCertificate } from '../../../agent/octavia/rest/own-certificate.ts';
import { RestServer } from '../../../agent/octavia/rest/rest-server.ts';
import { routesOf } from '../../../agent/octavia/rest/routes.ts';
import { CertificateStore } from '../../../agent/octavia/store/certificate-store.ts';
import { TextStore } from '../../../agent/octavia/store/text-store.ts';
import { silentLog } from '../values/silent-log.ts';
import { type AmphoraCertificates, amphoraCertificates } from './amphora-certificates.ts';
import { FakeHaproxy, fakeDatagrams, fakeNetwork, fakeVrrp } from './fake-parts.ts';

export const AMPHORA_ID = '3f9a2c1e-8b4d-4f6a-9c0e-1d2b3a4c5d6e';

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** undefined if it is not JSON. */
  readonly json: unknown;
}

export class AmphoraWorld {
  readonly folder: string;
  readonly certificates: AmphoraCertificates;
  readonly calls: string[] = [];
  readonly outcomes: PushOutcome[] = [];
  readonly haproxies = new Map<string, FakeHaproxy>();
  readonly server: RestServer;
  readonly loadBalancers: LoadBalancers;
  port = 0;

  static async create(t: ExecutionContext): Promise<AmphoraWorld> {
    const folder = mkdtempSync(join(tmpdir(), 'am-'));
    t.teardown(() => rmSync(folder, { recursive: true, force: true }));
    const world = new AmphoraWorld(folder, await amphoraCertificates(folder, AMPHORA_ID));
    world.port = parseSocketAddress(await world.server.listen())?.port ?? 0;
    t.teardown(() => world.server.close());
    return world;
  }

  private constructor(folder: string, certificates: AmphoraCertificates) {
    this.folder = folder;
    this.certificates = certificates;
    this.loadBalancers = newLoadBalancers(this);
    const settings = {
      address: '127.0.0.1',
      port: 0,
      certificate: certificates.server,
      clientAuthority: certificates.clientAuthority,
      minVersion: 'TLSv1.2' as const,
      requestTimeoutMs: 30_000,
    };
    const amphora: Amphora = {
      loadBalancers: this.loadBalancers,
      network: fakeNetwork(this.calls),
      vrrp: fakeVrrp(this.calls),
      datagrams: fakeDatagrams(),
      machine: {
        hostname: 'amphora-1',
        versions: async () => ({ haproxy: '2.6.12-1+deb12u4', keepalived: '2.2.7' }),
        details: machineDetails,
      },
      own: {
        replaceSettings: async (text) => {
          if (text.includes('Cannot')) throw new Error('line 1 has no key and value');
          this.calls.push(`config ${text}`);
        },
        replaceCertificate: async (pem) => this.server.use(await replaceCertificate(settings, pem)),
      },
    };
    this.server = new RestServer({
      settings,
      credentials: readCredentials(settings),
      routes: routesOf(amphora),
      log: silentLog(),
    });
  }

  /** As the controller, unless `client` is another file with certificate and key, or null for none; of another agent at `port`. */
  async ask(
    method: string,
    path: string,
    body: string | Buffer = '',
    client?: string | null,
    port = this.port,
  ): Promise<Answer> {
    const pem = client === null ? undefined : readFileSync(client ?? this.certificates.client, 'utf8');
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const options = {
      host: '127.0.0.1',
      port,
      method,
      path,
      agent: false as const,
      ca: readFileSync(this.certificates.serverAuthority),
      servername: AMPHORA_ID,
      ...(pem !== undefined && { cert: pem, key: pem }),
      headers: {
        'content-length': Buffer.byteLength(body),
        ...(method === 'POST' && { 'content-type': 'application/json' }),
      },
    };
    request(options, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        const isJson = response.headers['content-type'] === 'application/json';
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text,
          json: isJson ? JSON.parse(text) : undefined,
        });
      });
    })
      .on('error', reject)
      .end(body);
    return await promise;
  }

  haproxy(id: string): FakeHaproxy {
    const found = this.haproxies.get(id);
    if (found === undefined) throw new Error(`No HAProxy of ${id}`);
    return found;
  }
}

/** The load balancers of a new agent with the same folders. */
export function newLoadBalancers(world: AmphoraWorld): LoadBalancers {
  return new LoadBalancers({
    texts: new TextStore(join(world.folder, 'base')),
    certificates: new CertificateStore(join(world.folder, 'certs')),
    haproxyOf: (id) => {
      const haproxy = world.haproxies.get(id) ?? new FakeHaproxy();
      world.haproxies.set(id, haproxy);
      return haproxy;
    },
    observers: {
      before: () => undefined,
      restarted: (listeners) => world.calls.push(`restarted ${listeners.join(' ')}`),
      forgotten: (listeners) => {
        if (listeners.length > 0) world.calls.push(`forgotten ${listeners.join(' ')}`);
      },
      pushed: (outcome) => world.outcomes.push(outcome),
      served: () => world.calls.push('served'),
      changed: async () => undefined,
    },
    log: silentLog(),
  });
}
