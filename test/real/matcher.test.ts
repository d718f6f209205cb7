// The matcher that `why` and `plan` share chooses the rule that the real HAProxy chooses: 100,000 random requests over random routes.

import { connect } from 'node:net';
import ava from 'ava';
import fc from 'fast-check';
import type { LoadBalancer } from '../../agent/model/load-balancer.ts';
import type { HttpRouting, RouteEntry } from '../../agent/model/routes.ts';
import { type AskedRequest, askedRequest } from '../../agent/report/answers/access/asked-request.ts';
import { readPath } from '../../agent/report/answers/access/path-rules.ts';
import { RuleIndex } from '../../agent/report/answers/access/rule-index.ts';
import { freePort } from '../support/basics/free-port.ts';
import { requires } from '../support/basics/requirements.ts';
import { type RenderedHaproxy, startRendered } from '../support/haproxy/rendered-haproxy.ts';
import {
  ANY_HOSTS,
  NARROW_HOSTS,
  type RandomRequest,
  randomHosts,
  randomRequests,
} from '../support/values/random-routes.ts';
import { gatewayOf, ruleOf, sectionOf } from '../support/values/routes.ts';

const test = requires(ava, { haproxy: true });

const SETTINGS = { dotSegments: 'pass', ambiguousPaths: 'pass' } as const;
const NO_POOL = fc.constant('-');
const ROUNDS = 10;
const GATEWAYS = 20;
const REQUESTS = 500;

interface Served {
  readonly loadBalancer: LoadBalancer;
  readonly port: number;
  readonly index: RuleIndex;
}

test('Of 100,000 random requests each gets the rule that the matcher finds', async (t) => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  t.log(`seed ${seed}`);
  let haproxy: RenderedHaproxy | undefined;
  let asked = 0;
  let found = 0;
  const differing: string[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    // The order of HTTPRoutes, then that of Ingresses.
    const order = round % 2 === 0 ? 'first' : 'by-length';
    const hosts = fc.tuple(randomHosts(NO_POOL, ANY_HOSTS, order), randomHosts(NO_POOL, NARROW_HOSTS, order));
    const routes = fc.sample(hosts, { seed: seed + round, numRuns: GATEWAYS });
    const served = await Promise.all(routes.map(([any, narrow], at) => serve(at, any, narrow)));
    const loadBalancers = served.map(({ loadBalancer }) => loadBalancer);
    if (haproxy === undefined) haproxy = await startRendered(t, loadBalancers, SETTINGS);
    else await haproxy.reload(loadBalancers);
    const requests = fc.sample(randomRequests, { seed: seed + round, numRuns: REQUESTS });
    await Promise.all(
      served.map(async ({ port, index }) => {
        const got = await answersTo(port, requests);
        for (const [at, request] of requests.entries()) {
          const rule = ruleFor(index, port, request);
          asked++;
          if (rule !== '') found++;
          if (got[at] !== rule)
            differing.push(`${JSON.stringify(request)} gets "${got[at]}", and the matcher finds "${rule}"`);
        }
      }),
    );
  }
  t.deepEqual(differing.slice(0, 3), []);
  t.is(asked, ROUNDS * GATEWAYS * REQUESTS);
  t.true(found > asked / 10 && found < asked, `${found} found a rule`);
});

/** Each rule redirects to a place of its own, so that its answer names it. */
async function serve(
  at: number,
  any: Record<string, RouteEntry[]>,
  narrow: Record<string, RouteEntry[]>,
): Promise<Served> {
  const sections = [
    sectionOf('any', '*', named(any, 'any')),
    sectionOf('narrow', '*.a.example.org', named(narrow, 'narrow')),
  ];
  const routing: HttpRouting = { kind: 'http', sections, detectMisdirected: false };
  const port = await freePort();
  const loadBalancer = gatewayOf({ address: '127.0.0.1', port }, routing, { name: `edge-${at}` });
  return { loadBalancer, port, index: new RuleIndex(routing) };
}

function named(hosts: Record<string, RouteEntry[]>, section: string): Record<string, RouteEntry[]> {
  return Object.fromEntries(
    Object.entries(hosts).map(([host, entries], number) => [
      host,
      entries.map(({ match }, at): RouteEntry => {
        const name = `${section}-${number}-${at}`;
        const location = `http://rule.example/${name}`;
        const parts = { scheme: '', hostname: '', port: 0, path: undefined } as const;
        return { match, rule: { ...ruleOf({ kind: 'redirect', status: 302, ...parts, location }), name } };
      }),
    ]),
  );
}

function ruleFor(index: RuleIndex, port: number, { method, host, path, header }: RandomRequest): string {
  const own = askedRequest(`http://${host}:${port}${path}`);
  const headers = new Map([...own.headers, ...(header === '' ? [] : [['x-a', [header]] as const])]);
  const request: AskedRequest = { ...own, method, headers };
  return index.find(request, readPath(request.path, SETTINGS)).entry?.rule.name ?? '';
}

/** The names of the rules, '' for none, in the order of the requests: all on one connection. */
async function answersTo(port: number, requests: readonly RandomRequest[]): Promise<readonly string[]> {
  const socket = connect({ host: '127.0.0.1', port });
  const answers: string[] = [];
  let text = '';
  const send = (): void => {
    for (const request of requests.slice(answers.length, answers.length + AT_ONCE))
      socket.write(textOf(request, port));
  };
  send();
  for await (const chunk of socket) {
    text += chunk;
    const got = [...text.matchAll(/HTTP\/1\.1 (\d+) [\s\S]*?\r\n\r\n/g)];
    // The last head may be there without its body.
    if (got.length < Math.min(AT_ONCE, requests.length - answers.length)) continue;
    answers.push(...got.map(([head, status = '']) => answerOf(head, status)));
    text = '';
    if (answers.length >= requests.length) break;
    send();
  }
  return answers;
}

/** HAProxy 2.6 answers 400 to one of more pipelined requests than its buffer has room for. */
const AT_ONCE = 50;

function textOf({ method, host, path, header }: RandomRequest, port: number): string {
  const own = header === '' ? '' : `X-A: ${header}\r\n`;
  return `${method} ${path} HTTP/1.1\r\nHost: ${host}:${port}\r\n${own}Content-Length: 0\r\n\r\n`;
}

function answerOf(head: string, status: string): string {
  const [, name = ''] = /location: http:\/\/rule\.example\/(\S+)/i.exec(head) ?? [];
  return status === '302' ? name : status === '404' ? '' : `status ${status}`;
}
