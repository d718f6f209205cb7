// `jwt-cost`: wrk through HTTPRoutes that want a token, of RS256 and of ES256, and through a file by hand that verifies the same tokens
// by its own rules: signature, issuer, audience and end, with the subject in a header. Once each request has the same token, once it has
// one of more than HAProxy keeps the claims of. The largest difference of HAProxy's time for a request counts. All take turns in changing order.

import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { chmodSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { startAgent } from '../support/agent.ts';
import { GatewayFolder, route } from '../support/gateway.ts';
import { responder, startHaproxy } from '../support/haproxy.ts';
import { Addresses, type ServiceSpec, services } from '../support/objects.ts';
import { type Benchmark, row } from '../support/row.ts';
import { type Scratch, withScratch } from '../support/scratch.ts';
import { median } from '../support/statistics.ts';
import { until } from '../support/until.ts';
import { processorTime } from '../support/usage.ts';
import { wrk } from '../support/wrk.ts';

const MEMBER_PORT = 9000;
const PORTS = { agent: 8080, byHand: 8081 } as const;
const ROUNDS = 12;
const MOST_MICROSECONDS = 60;
const ISSUER = 'https://id.example.org';
const AUDIENCE = 'shop';

interface Issuer {
  readonly algorithm: 'RS256' | 'ES256';
  readonly host: string;
  readonly publicKey: KeyObject;
  readonly tokens: readonly string[];
}

/** Requests by one issuer's tokens. */
interface Traffic {
  readonly what: string;
  readonly headers: readonly string[];
  /** '' without one. */
  readonly script: string;
}

/** Three times as many as fit into the memory for claims. */
const TOKENS = 10_000;

export const jwtCost: Benchmark = {
  rows: ['jwt-cost'],
  run: (bench) =>
    withScratch(async (scratch) => {
      // HAProxy connects to its own socket after it has become another user.
      for (const folder of [dirname(scratch.directory), scratch.directory])
        chmodSync(folder, statSync(folder).mode | 0o011);
      const member = responder(`0.0.0.0:${MEMBER_PORT}`);
      await startHaproxy(scratch, 'member', bench.haproxy, member.body, { globals: member.globals });
      const [spec] = services(new Addresses(), 1, 2, { port: 80, memberPort: MEMBER_PORT });
      if (spec === undefined) throw new Error('No Service');
      const issuers = [issuer('RS256'), issuer('ES256')];
      const folder = new GatewayFolder(scratch.path('m'), spec.vip, PORTS.agent, [spec]);
      folder.write(
        'routes',
        issuers.flatMap((each) => [guarded(each, spec), keysOf(each)]),
      );
      const agent = startAgent(scratch, folder.path, { haproxy: bench.haproxy });
      const byHand = await startHaproxy(
        scratch,
        'by-hand',
        bench.haproxy,
        fileByHand(scratch, spec, issuers),
        {
          globals: '    maxconn 9000\n',
        },
      );
      const traffic = issuers.flatMap((each) => trafficOf(each, scratch));
      for (const port of Object.values(PORTS))
        for (const { what, headers, script } of traffic)
          await until(
            `Port ${port} lets in ${what}`,
            () => wrk(spec.vip, port, headers, script).then(Boolean, () => false),
            { every: 1_000 },
          );

      const pidsOf = { agent: () => agent.haproxyPids(), byHand: () => [byHand.pid] };
      const timeOf = (turn: keyof typeof PORTS): number =>
        pidsOf[turn]().reduce((sum, pid) => sum + processorTime(pid), 0);
      const costs = traffic.map(() => ({ agent: [] as number[], byHand: [] as number[] }));
      const rounds = bench.scaled(ROUNDS, 2);
      for (let round = 1; round <= rounds; round++) {
        bench.report(`jwt-cost: round ${round} of ${rounds}`);
        const turns = Object.keys(PORTS) as (keyof typeof PORTS)[];
        if (round % 2 === 0) turns.reverse();
        for (const [at, { headers, script }] of traffic.entries())
          for (const turn of turns) {
            const before = timeOf(turn);
            const rate = await wrk(spec.vip, PORTS[turn], headers, script);
            costs[at]?.[turn].push(((timeOf(turn) - before) * 1_000) / rate);
          }
      }
      const own = costs.map(({ agent: ours, byHand: theirs }) => median(ours) - median(theirs));
      const value = Math.max(...own);
      const details = traffic.flatMap(({ what }, at) => [
        [`µs of HAProxy for each request with ${what}`, median(costs[at]?.agent ?? [])],
        [`more than by hand with ${what}`, own[at] ?? 0],
      ]);
      bench.measured(
        row({
          name: 'jwt-cost',
          value,
          unit: 'µs',
          target: `≤ ${MOST_MICROSECONDS} µs of HAProxy's processor for each request more than a file by hand, with RS256 and with ES256, the same token and others`,
          met: value <= MOST_MICROSECONDS,
          reference: {
            name: 'a request through a file by hand that verifies the token, RS256, the same each time',
            value: median(costs[0]?.byHand ?? []),
          },
          details: { ...Object.fromEntries(details), rounds },
        }),
      );
    }),
};

function issuer(algorithm: Issuer['algorithm']): Issuer {
  const { publicKey, privateKey } =
    algorithm === 'RS256'
      ? generateKeyPairSync('rsa', { modulusLength: 2048 })
      : generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const seconds = Math.floor(Date.now() / 1000);
  const claims = { iss: ISSUER, aud: AUDIENCE, sub: 'ann', iat: seconds, exp: seconds + 86_400, name: 'Ann' };
  const tokens = Array.from({ length: TOKENS }, (_, jti) => {
    const text = [
      { alg: algorithm, kid: 'a' },
      { ...claims, jti },
    ]
      .map((each) => Buffer.from(JSON.stringify(each)).toString('base64url'))
      .join('.');
    const signature = sign('sha256', Buffer.from(text), { key: privateKey, dsaEncoding: 'ieee-p1363' });
    return `${text}.${signature.toString('base64url')}`;
  });
  return { algorithm, host: `${algorithm.toLowerCase()}.example.org`, publicKey, tokens };
}

function trafficOf({ algorithm, host, tokens }: Issuer, scratch: Scratch): readonly Traffic[] {
  const [all, script] = ['tokens', 'lua'].map((end) => scratch.path(`${algorithm}.${end}`)) as [
    string,
    string,
  ];
  writeFileSync(all, tokens.join('\n'));
  writeFileSync(
    script,
    `local requests, at = {}, 0
init = function()
  for token in io.lines('${all}') do
    requests[#requests + 1] = wrk.format(nil, nil, { Host = '${host}', Authorization = 'Bearer ' .. token })
  end
end
request = function()
  at = at % #requests + 1
  return requests[at]
end
`,
  );
  const headers = [`Host: ${host}`, `Authorization: Bearer ${tokens[0]}`];
  return [
    { what: algorithm, headers, script: '' },
    { what: `${algorithm}, many tokens`, headers: [], script },
  ];
}

function pemOf({ publicKey }: Issuer): string {
  return publicKey.export({ type: 'spki', format: 'pem' }).toString();
}

function nameOfKeys({ algorithm }: Issuer): string {
  return `keys-${algorithm.toLowerCase()}`;
}

function guarded(from: Issuer, spec: ServiceSpec): Readonly<Record<string, unknown>> {
  const made = route(nameOfKeys(from), [from.host], spec);
  const jwt = `{issuer: "${ISSUER}", audiences: ${AUDIENCE}, keys: configmap/${nameOfKeys(from)}, headers: {X-User: sub}}`;
  return { ...made, metadata: { ...(made.metadata as object), annotations: { 'headgate.io/jwt': jwt } } };
}

/** In the namespace of the route. */
function keysOf(from: Issuer): Readonly<Record<string, unknown>> {
  const metadata = { namespace: 'bench', name: nameOfKeys(from) };
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { 'a.pem': pemOf(from) } };
}

function fileByHand(scratch: Scratch, spec: ServiceSpec, issuers: readonly Issuer[]): string {
  const verified = issuers.map((each) => {
    const file = scratch.path(`${nameOfKeys(each)}.pem`);
    writeFileSync(file, pemOf(each));
    const isHost = `{ var(txn.host) -m str ${each.host} }`;
    return `
    http-request deny deny_status 401 if ${isHost} !{ var(txn.bearer),jwt_header_query('$.alg') -m str ${each.algorithm} }
    http-request deny deny_status 401 if ${isHost} !{ var(txn.bearer),jwt_verify(${each.algorithm},${file}) -m int 1 }`;
  });
  const servers = spec.members.map(({ address, port }, at) => `    server s${at} ${address}:${port}`);
  return `
frontend by-hand
    mode http
    bind ${spec.vip}:${PORTS.byHand}
    option forwardfor
    http-request set-var(txn.host) req.hdr(host),lower
    http-request set-var(txn.bearer) http_auth_bearer${verified.join('')}
    http-request deny deny_status 401 unless { var(txn.bearer),jwt_payload_query('$.iss') -m str ${ISSUER} }
    http-request deny deny_status 401 unless { var(txn.bearer),jwt_payload_query('$.aud') -m str ${AUDIENCE} }
    http-request set-var(txn.now) date
    http-request set-var(txn.exp) var(txn.bearer),jwt_payload_query('$.exp','int')
    http-request deny deny_status 401 if { var(txn.exp),sub(txn.now) lt 0 }
    http-request set-header X-User %[var(txn.bearer),jwt_payload_query('$.sub')]
    use_backend api
backend api
    mode http
    balance roundrobin
${servers.join('\n')}
`;
}
