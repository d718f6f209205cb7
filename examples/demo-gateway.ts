// The Gateway of the demonstration: two routes of one host, a weight that moves from 0 to 100 and a certificate that is renewed,
// under a load of new TLS connections.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { TLSSocket } from 'node:tls';
import type { DemoAgent } from './demo-agent.ts';
import { writeManifest } from './demo-manifest.ts';
import type { Member } from './demo-members.ts';

export interface GatewayReport {
  readonly requests: number;
  readonly failed: number;
  readonly errors: readonly string[];
  /** Milliseconds from the edit to the first request that followed it. */
  readonly route: number;
  readonly weight: number;
  readonly certificate: number;
  /** Requests that went to the old pool after the first one that followed the new weight. */
  readonly late: number;
  readonly reloads: number;
}

interface Answer {
  readonly member: string;
  /** The serial number of the certificate in the handshake. */
  readonly certificate: string;
}

const HOST = 'shop.example';
const CLIENTS = 4;
const PATIENCE_MS = 30_000;

/** What is missing, as half a sentence, or the report. `members`: one for each of the two pools. */
export async function showGateway(
  directory: string,
  agent: DemoAgent,
  port: number,
  memberPort: number,
  [stable, canary]: readonly Member[],
): Promise<GatewayReport | string> {
  if (stable === undefined || canary === undefined) throw new Error('The Gateway needs two members');
  const certificates = ['old', 'new'].map((name) => makeCertificate(directory, name));
  const [first, second] = certificates;
  if (first === undefined || second === undefined) return 'this machine lacks openssl';
  const path = join(agent.manifests, 'gateway.yaml');
  const write = (weight: number, certificate: string, hasApi: boolean): Promise<void> =>
    writeManifest(path, manifest({ port, memberPort, stable, canary, weight, certificate, hasApi }));
  const before = await agent.reloads();
  await write(0, first, false);
  await until(async () => (await ask(port, '/').catch(noAnswer)).member === stable.name);
  const load = new Load(port);

  const ofRoute = async () => (await ask(port, '/api').catch(noAnswer)).member === canary.name;
  const route = await timed(() => write(0, first, true), ofRoute);
  const weight = await timed(
    () => write(100, first, true),
    async () => (await ask(port, '/')).member === canary.name,
  );
  const late = await load.count(500, ({ member }) => member === stable.name);
  const { certificate: old } = await ask(port, '/');
  const certificate = await timed(
    () => write(100, second, true),
    async () => (await ask(port, '/')).certificate !== old,
  );
  await delay(500);
  const { requests, failed, errors } = await load.end();
  return {
    requests,
    failed,
    errors,
    route,
    weight,
    certificate,
    late,
    reloads: (await agent.reloads()) - before,
  };
}

/** New connections one after the other, by several clients. */
class Load {
  readonly #clients: Promise<void>[] = [];
  #isOver = false;
  #requests = 0;
  readonly #errors: string[] = [];
  #seen: ((answer: Answer) => void) | undefined;

  constructor(port: number) {
    for (let client = 0; client < CLIENTS; client++) this.#clients.push(this.#run(port));
  }

  async #run(port: number): Promise<void> {
    while (!this.#isOver) {
      this.#requests++;
      await ask(port, '/').then(
        (answer) => this.#seen?.(answer),
        (error) => this.#errors.push(String(error)),
      );
      await delay(5);
    }
  }

  /** Of the answers of so many milliseconds. */
  async count(milliseconds: number, is: (answer: Answer) => boolean): Promise<number> {
    let count = 0;
    // Requests that have begun before may still get the old answer.
    await delay(50);
    this.#seen = (answer) => {
      if (is(answer)) count++;
    };
    await delay(milliseconds);
    this.#seen = undefined;
    return count;
  }

  async end(): Promise<Pick<GatewayReport, 'requests' | 'failed' | 'errors'>> {
    this.#isOver = true;
    await Promise.all(this.#clients);
    return { requests: this.#requests, failed: this.#errors.length, errors: this.#errors.slice(0, 3) };
  }
}

const noAnswer = (): Answer => ({ member: '', certificate: '' });

/** On a new connection. Errors: no answer with status 200. */
function ask(port: number, path: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const given = { host: '127.0.0.1', port, path, servername: HOST, headers: { host: HOST } };
    const outgoing = request(
      { ...given, agent: false, rejectUnauthorized: false, timeout: 5_000 },
      (response) => {
        const certificate = (response.socket as TLSSocket).getPeerCertificate().serialNumber;
        response.resume();
        response.once('error', reject);
        response.once('end', () => {
          if (response.statusCode !== 200) reject(new Error(`Status ${response.statusCode}`));
          else resolve({ member: String(response.headers['x-member']), certificate });
        });
      },
    );
    outgoing.once('timeout', () => outgoing.destroy(new Error('No answer within 5 s')));
    outgoing.once('error', reject);
    outgoing.end();
  });
}

async function timed(edit: () => Promise<void>, holds: () => Promise<boolean>): Promise<number> {
  await edit();
  const began = performance.now();
  await until(holds);
  return performance.now() - began;
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  for (const end = performance.now() + PATIENCE_MS; !(await holds()); await delay(1))
    if (performance.now() > end) throw new Error('The Gateway does not serve what its manifest asks for');
}

/** The Secret's texts as a manifest's `stringData`; undefined without openssl. */
function makeCertificate(directory: string, name: string): string | undefined {
  const [cert, key] = [join(directory, `${name}.crt`), join(directory, `${name}.key`)];
  const words = [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-days',
    '1',
  ];
  try {
    execFileSync('openssl', [...words, '-subj', `/CN=${HOST}`, '-keyout', key, '-out', cert], {
      stdio: 'ignore',
    });
  } catch {
    return undefined;
  }
  return JSON.stringify({ 'tls.crt': readFileSync(cert, 'utf8'), 'tls.key': readFileSync(key, 'utf8') });
}

interface GatewayManifest {
  readonly port: number;
  readonly memberPort: number;
  readonly stable: Member;
  readonly canary: Member;
  /** Of the canary, of 100. */
  readonly weight: number;
  readonly certificate: string;
  readonly hasApi: boolean;
}

function manifest(given: GatewayManifest): string {
  const { port, memberPort, stable, canary, weight, certificate, hasApi } = given;
  const api = `
    - matches: [{ path: { value: /api } }]
      backendRefs: [{ name: canary, port: 80 }]`;
  return `apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: { name: demo }
spec: { controllerName: headgate.io/gateway-controller }
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: edge, namespace: default }
spec:
  gatewayClassName: demo
  addresses: [{ type: IPAddress, value: 127.0.0.1 }]
  listeners:
    - { name: https, protocol: HTTPS, port: ${port}, tls: { certificateRefs: [{ name: shop-tls }] } }
---
apiVersion: v1
kind: Secret
type: kubernetes.io/tls
metadata: { name: shop-tls, namespace: default }
stringData: ${certificate}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: shop, namespace: default }
spec:
  parentRefs: [{ name: edge }]
  hostnames: [${HOST}]
  rules:
    - backendRefs: [{ name: stable, port: 80, weight: ${100 - weight} }, { name: canary, port: 80, weight: ${weight} }]${hasApi ? api : ''}
---
${pool('stable', stable, memberPort)}---
${pool('canary', canary, memberPort)}`;
}

function pool(name: string, { address, name: pod }: Member, memberPort: number): string {
  return `apiVersion: v1
kind: Service
metadata: { name: ${name}, namespace: default }
spec: { ports: [{ port: 80 }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: ${name}-1, namespace: default, labels: { kubernetes.io/service-name: ${name} } }
addressType: IPv4
ports: [{ port: ${memberPort} }]
endpoints: [{ addresses: [${address}], targetRef: { kind: Pod, name: ${pod} } }]
`;
}
