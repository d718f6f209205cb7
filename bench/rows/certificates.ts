// `certificates`: a Gateway with 1,000 certificates on one port. The time from the start of the agent's process to a handshake
// with the last of them, and the time from the write of a Secret to the first handshake with its next certificate, while others
// make handshakes with it. Reference: HAProxy alone with the same certificates, from its start.

import { X509Certificate } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { startAgent } from '../support/agent.ts';
import { type CertificateFile, makeCertificates, tlsRequest, writePems } from '../support/certificates.ts';
import { GatewayFolder, route } from '../support/gateway.ts';
import { responder, startHaproxy } from '../support/haproxy.ts';
import { Addresses, services } from '../support/objects.ts';
import { type Benchmark, row } from '../support/row.ts';
import { withScratch } from '../support/scratch.ts';
import { median, percentile } from '../support/statistics.ts';
import { pause } from '../support/until.ts';

const MEMBER_PORT = 9000;
const [PORT, BY_HAND_PORT] = [8443, 8444];
const PER_LISTENER = 50;
const RUNS = 3;
const ROTATIONS = 20;
const BETWEEN_MS = 200;
/** Between two handshakes of the load. */
const LOAD_INTERVAL_MS = 10;
const MOST_MS = 60_000;

export const certificates: Benchmark = {
  rows: ['certificates'],
  run: (bench) =>
    withScratch(async (scratch) => {
      const member = responder(`0.0.0.0:${MEMBER_PORT}`);
      await startHaproxy(scratch, 'member', bench.haproxy, member.body, { globals: member.globals });
      const [spec] = services(new Addresses(), 1, 1, { port: 80, memberPort: MEMBER_PORT });
      if (spec === undefined) throw new Error('No Service');
      const count = bench.scaled(1_000, 4);
      const rotations = bench.scaled(ROTATIONS, 2);
      bench.report(`certificates: ${count + rotations} are made`);
      const hosts = Array.from(
        { length: count },
        (_, at) => `h${at % PER_LISTENER}.l${Math.floor(at / PER_LISTENER)}.example.org`,
      );
      const all = await makeCertificates(scratch.path('certificates'), hosts);
      const last = all.at(-1);
      if (last === undefined) throw new Error('No certificates');
      const next = await makeCertificates(scratch.path('next'), Array(rotations).fill(last.host));
      const listeners = Array.from({ length: Math.ceil(count / PER_LISTENER) }, (_, at) => ({
        name: `l${at}`,
        port: PORT,
        protocol: 'HTTPS',
        hostname: `*.l${at}.example.org`,
        tls: {
          certificateRefs: all
            .slice(at * PER_LISTENER, (at + 1) * PER_LISTENER)
            .map((_, index) => ({ name: secretName(at * PER_LISTENER + index) })),
        },
      }));
      const folder = new GatewayFolder(scratch.path('m'), spec.vip, PORT, [spec], listeners);
      for (const [at, each] of all.entries()) folder.write(secretName(at), [secret(secretName(at), each)]);
      folder.write('route', [route('all', [], spec)]);
      const untilServed = async (port: number, { host, cert }: CertificateFile, since: number) => {
        const wanted = new X509Certificate(cert).serialNumber;
        for (;;) {
          const { serial, failure } = await tlsRequest(spec.vip, port, host);
          if (serial === wanted && failure === '') return performance.now() - since;
          if (performance.now() - since > MOST_MS) throw new Error(`${host} is not served: ${failure}`);
          await delay(1);
        }
      };

      const cold: number[] = [];
      const byHand: number[] = [];
      const pems = scratch.path('pems');
      writePems(pems, all);
      const body = `
frontend by-hand
    mode http
    timeout client 10s
    bind ${spec.vip}:${BY_HAND_PORT} ssl crt ${pems}
    http-request return status 200
`;
      const runs = bench.scaled(RUNS);
      const startOne = async (run: number) => {
        bench.report(`certificates: start ${run} of ${runs}`);
        const plainBegan = performance.now();
        const plain = await startHaproxy(scratch, `by-hand-${run}`, bench.haproxy, body);
        byHand.push((await untilServed(BY_HAND_PORT, last, plainBegan)) / 1_000);
        await plain.stop();
        const began = performance.now();
        const started = startAgent(scratch, folder.path, { name: `a${run}`, haproxy: bench.haproxy });
        cold.push((await untilServed(PORT, last, began)) / 1_000);
        return started;
      };
      let agent = await startOne(1);
      for (let run = 2; run <= runs; run++) {
        await agent.stop();
        agent = await startOne(run);
      }

      await pause(bench.scaled(2_000, 200));
      const reloads = await agent.counter('headgate_reloads_total');
      let isOver = false;
      const failures: string[] = [];
      let handshakes = 0;
      const load = (async () => {
        for (; !isOver; handshakes++) {
          const { failure } = await tlsRequest(spec.vip, PORT, last.host);
          if (failure !== '') failures.push(failure);
          await delay(LOAD_INTERVAL_MS);
        }
      })();
      const rotated: number[] = [];
      const name = secretName(count - 1);
      for (const certificate of next) {
        await pause(BETWEEN_MS);
        folder.write(name, [secret(name, certificate)]);
        rotated.push(await untilServed(PORT, certificate, performance.now()));
      }
      isOver = true;
      await load;
      const made = (await agent.counter('headgate_reloads_total')) - reloads;
      const rotation = median(rotated);
      bench.measured(
        row({
          name: 'certificates',
          value: median(cold),
          unit: 's',
          target: '≤ 2.2 × HAProxy alone; one rotated ≤ 20 ms, no failed handshake, no reload',
          met: median(cold) <= 2.2 * median(byHand) && rotation <= 20 && failures.length === 0 && made === 0,
          reference: { name: 'HAProxy alone with the same certificates', value: median(byHand) },
          details: {
            certificates: count,
            'rotation p50, ms': rotation,
            'rotation p99, ms': percentile(rotated, 0.99),
            rotations: rotated.length,
            handshakes,
            failed: failures.length,
            reloads: made,
          },
        }),
      );
    }),
};

function secretName(at: number): string {
  return `tls-${at}`;
}

function secret(name: string, { cert, key }: CertificateFile) {
  const data = {
    'tls.crt': Buffer.from(cert).toString('base64'),
    'tls.key': Buffer.from(key).toString('base64'),
  };
  const metadata = { namespace: 'bench', name };
  return { apiVersion: 'v1', kind: 'Secret', metadata, type: 'kubernetes.io/tls', data };
}
