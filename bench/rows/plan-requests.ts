// `plan-requests`: `headgate plan` with a log of a million requests over 5,000 routes of two states, from its start to its end.
// Reference: a program that only reads the lines of the same log as JSON.

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Benchmark, row } from '../support/row.ts';
import { withScratch } from '../support/scratch.ts';

const run = promisify(execFile);
const main = fileURLToPath(new URL('../../agent/main.ts', import.meta.url));
const HOSTS = 1_000;
const MOST_SECONDS = 10;
const READER = `
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
let count = 0;
for await (const line of createInterface({ input: createReadStream(process.argv[2]) })) if (JSON.parse(line).host !== '') count++;
console.log(count);`;

export const planRequests: Benchmark = {
  rows: ['plan-requests'],
  run: (bench) =>
    withScratch(async (scratch) => {
      const routes = bench.scaled(5_000, 20);
      const requests = bench.scaled(1_000_000, 100);
      bench.report(`plan-requests: ${requests} requests, ${routes} routes`);
      const [before, after] = ['before', 'after'].map((name) => scratch.path(name));
      for (const [folder, isAfter] of [
        [before ?? '', false],
        [after ?? '', true],
      ] as const) {
        mkdirSync(folder);
        writeFileSync(join(folder, 'all.json'), JSON.stringify(manifests(routes, isAfter)));
      }
      const log = scratch.path('requests.log');
      await writeLog(log, requests, routes);
      const reader = scratch.path('reader.mjs');
      writeFileSync(reader, READER);
      const byHand = await seconds(process.execPath, [reader, log]);
      const args = [
        'plan',
        before ?? '',
        after ?? '',
        '--requests',
        log,
        '--json',
        '--state-dir',
        scratch.path('state'),
      ];
      const took = await seconds(process.execPath, [main, ...args]);
      const answer: { log: { requests: number; groups: { count: number }[] } } = JSON.parse(took.output);
      const differing = answer.log.groups.reduce((sum, { count }) => sum + count, 0);
      if (answer.log.requests !== requests || differing === 0)
        throw new Error(`It compared ${answer.log.requests} requests, and ${differing} differ`);
      bench.measured(
        row({
          name: 'plan-requests',
          value: took.seconds,
          unit: 's',
          target: `≤ ${MOST_SECONDS} s`,
          met: took.seconds <= MOST_SECONDS,
          reference: { name: 'reading the lines as JSON', value: byHand.seconds },
          details: { requests, routes, differing },
        }),
      );
    }),
};

/** Its answer has status 1, since something differs. */
async function seconds(
  program: string,
  args: readonly string[],
): Promise<{ seconds: number; output: string }> {
  const began = performance.now();
  const output = await run(program, args, { maxBuffer: 2 ** 28 }).then(
    ({ stdout }) => stdout,
    (error: { code?: unknown; stdout?: string }) => {
      if (error.code !== 1 || error.stdout === undefined) throw error;
      return error.stdout;
    },
  );
  return { seconds: (performance.now() - began) / 1_000, output };
}

async function writeLog(path: string, requests: number, routes: number): Promise<void> {
  const stream = createWriteStream(path);
  for (let at = 0; at < requests; at++) {
    const line = {
      time: '2026-11-26T03:12:07Z',
      client: `198.51.${(at >> 8) % 256}.${at % 256}`,
      ...{ vip: '192.0.2.10', namespace: 'shop', service: 'edge', port: 80, member: '10.244.1.17:8080' },
      ...{
        method: 'GET',
        host: `h${at % HOSTS}.example.org`,
        path: `/p${at % Math.ceil(routes / HOSTS)}/${at}`,
      },
      ...{ status: 200, bytesIn: 112, bytesOut: 2_310, durationMs: 15, ended: '--' },
    };
    if (!stream.write(`${JSON.stringify(line)}\n`)) await once(stream, 'drain');
  }
  stream.end();
  await finished(stream);
}

/** One route in fifty sends to another Service afterwards. */
function manifests(routes: number, isAfter: boolean): object {
  const metadata = (name: string): object => ({ name, namespace: 'shop' });
  const items: object[] = [
    {
      ...{ apiVersion: 'gateway.networking.k8s.io/v1', kind: 'GatewayClass', metadata: { name: 'headgate' } },
      spec: { controllerName: 'headgate.io/gateway-controller' },
    },
    {
      ...{ apiVersion: 'gateway.networking.k8s.io/v1', kind: 'Gateway', metadata: metadata('edge') },
      spec: {
        gatewayClassName: 'headgate',
        addresses: [{ type: 'IPAddress', value: '192.0.2.10' }],
        listeners: [{ name: 'web', port: 80, protocol: 'HTTP' }],
      },
    },
    ...['web', 'other'].flatMap((name, at) => [
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: metadata(name),
        spec: { ports: [{ port: 80, name: 'http' }] },
      },
      {
        ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4' },
        metadata: { ...metadata(`${name}-1`), labels: { 'kubernetes.io/service-name': name } },
        ports: [{ name: 'http', port: 8_080 }],
        endpoints: [{ addresses: [`10.1.1.${at + 1}`] }],
      },
    ]),
  ];
  for (let at = 0; at < routes; at++)
    items.push({
      ...{ apiVersion: 'gateway.networking.k8s.io/v1', kind: 'HTTPRoute', metadata: metadata(`r${at}`) },
      spec: {
        parentRefs: [{ name: 'edge' }],
        hostnames: [`h${at % HOSTS}.example.org`],
        rules: [
          {
            matches: [{ path: { type: 'PathPrefix', value: `/p${Math.floor(at / HOSTS)}` } }],
            backendRefs: [{ name: isAfter && at % 50 === 0 ? 'other' : 'web', port: 80 }],
          },
        ],
      },
    });
  return { apiVersion: 'v1', kind: 'List', items };
}
