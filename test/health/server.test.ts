import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import { createConnection, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { LiveUpdates } from '../../health/live-updates.ts';
import type { PageView } from '../../health/page-model.ts';
import { type HealthServerOptions, startHealthServer } from '../../health/server.ts';
import { eventually } from '../support/basics/eventually.ts';
import { summary, view } from '../support/report/page-view.ts';

test('The server sends the page and its files with a type, a tag and a policy that allows nothing else', async (t) => {
  const url = await start(t);
  const page = await (await fetch(`${url}/`)).text();
  const files = [...page.matchAll(/(?:src|href)="(\/[A-Za-z-.]+\.[a-z]+)"/g)].map(([, path]) => path);
  t.true(files.includes('/page.js') && files.includes('/page.css') && files.includes('/icon.svg'));
  for (const path of ['/', '/charts.js', ...files]) {
    const response = await fetch(`${url}${path}`);
    t.is(response.status, 200, path);
    t.regex(response.headers.get('content-security-policy') ?? '', /^default-src 'none'; script-src 'self';/);
    t.notRegex(response.headers.get('content-security-policy') ?? '', /unsafe|\*|https?:/);
    t.is(response.headers.get('x-content-type-options'), 'nosniff');
    t.regex(response.headers.get('content-type') ?? '', /^(text\/(html|css|javascript)|image\/svg)/);
    const tag = response.headers.get('etag') ?? '';
    const again = await fetch(`${url}${path}`, { headers: { 'if-none-match': tag } });
    t.is(again.status, 304);
  }
});

test('The page loads nothing from other hosts and has no inline script or style', async (t) => {
  const url = await start(t);
  for (const path of [
    '/',
    '/page.css',
    '/page.js',
    '/elements.js',
    '/charts.js',
    '/host.js',
    '/load-balancers.js',
    '/words.js',
    '/amphora.js',
    '/amphora-words.js',
  ]) {
    const text = await (await fetch(`${url}${path}`)).text();
    t.notRegex(
      text,
      /https?:\/\/(?!www\.w3\.org\/2000\/svg)|innerHTML|outerHTML|insertAdjacent|document\.write|eval\(/,
      path,
    );
  }
  t.notRegex(await (await fetch(`${url}/`)).text(), /<style|style=|\son[a-z]+=|<script(?![^>]*src=)/);
});

test('The server of an amphora has its own page, with the same policy, and not the other one', async (t) => {
  const url = await start(t, undefined, { page: 'amphora.html' });
  const response = await fetch(`${url}/`);
  const page = await response.text();
  t.regex(response.headers.get('content-security-policy') ?? '', /^default-src 'none'; script-src 'self';/);
  t.notRegex(page, /https?:|<style|style=|\son[a-z]+=|<script(?![^>]*src=)/);
  const files = [...page.matchAll(/(?:src|href)="(\/[A-Za-z-.]+\.[a-z]+)"/g)].map(([, path]) => path);
  t.true(files.includes('/amphora.js'));
  for (const path of files) t.is((await fetch(`${url}${path}`)).status, 200, path);
  for (const path of ['/index.html', '/amphora.html']) t.is((await fetch(`${url}${path}`)).status, 404, path);
});

test('The server answers only GET and HEAD, and 404 for an unknown path', async (t) => {
  const url = await start(t);
  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])
    for (const path of ['/', '/events', '/metrics'])
      t.is((await fetch(`${url}${path}`, { method })).status, 405, `${method} ${path}`);
  for (const path of ['/', '/events', '/page.js', '/healthz']) {
    const head = await fetch(`${url}${path}`, { method: 'HEAD' });
    t.is(head.status, 200, path);
    t.is(await head.text(), '');
  }
  for (const path of [
    '/nothing',
    '/tsconfig.json',
    '/index.html',
    '/amphora.html',
    '/../server.ts',
    '/%2e%2e/server.ts',
    '/constructor',
  ])
    t.is((await ask(url, path)).statusCode, 404, path);
});

test("The server refuses a request for another host's name that resolves to loopback", async (t) => {
  const url = await start(t);
  for (const path of ['/', '/events', '/metrics']) {
    const refused = await ask(url, path, { host: 'evil.example' });
    t.is(refused.statusCode, 403, path);
  }
  t.is((await ask(url, '/healthz', { host: 'localhost:1' })).statusCode, 200);
});

test('A page gets every part when it connects, and then only parts that have changed', async (t) => {
  let now: PageView = view;
  const asked: string[] = [];
  const url = await start(t, async (question) => {
    asked.push(question.toString());
    return now;
  });
  const events = await listen(t, url, '?search=web&page=2');
  t.deepEqual(await events.next(5), ['summary', 'list', 'namespaces', 'load', 'detail']);
  t.is(asked[0], 'search=web&page=2');
  t.deepEqual(events.last('summary'), JSON.parse(JSON.stringify(summary)));
  const before = asked.length;
  await until(() => asked.length > before);
  now = { ...view, summary: { ...summary, fault: 'line one\nevent: list\ndata: {}\n\n' } };
  t.deepEqual(await events.next(1), ['summary']);
  t.is((events.last('summary') as { fault: string }).fault, now.summary.fault);
});

test('The server refuses a 17th page until another one closes', async (t) => {
  const url = await start(t);
  const all = await Promise.all(Array.from({ length: 16 }, () => listen(t, url)));
  const refused = await ask(url, '/events');
  t.is(refused.statusCode, 503);
  t.is(refused.headers['retry-after'], '5');
  all[0]?.close();
  let status = 0;
  await until(async () => {
    const response = await ask(url, '/events');
    status = response.statusCode ?? 0;
    return status === 200;
  });
  t.is(status, 200);
});

test('A page of another host takes the place of one of the host that holds all pages', async (t) => {
  const url = await start(t);
  const get = `GET /events HTTP/1.1\r\nHost: ${new URL(url).host}\r\n\r\n`;
  const held: Socket[] = [];
  for (let at = 0; at < 16; at++) {
    held.push(await hold(t, url, '127.0.0.3', get));
    await once(held[at] as Socket, 'data');
  }
  const events = await listen(t, url);
  await events.next(5);
  await haveEnded(held, 1);
  t.deepEqual(
    held.map(({ closed }) => closed),
    held.map((_, at) => at === 0),
  );
});

test('The server refuses a query that is too long', async (t) => {
  const url = await start(t);
  t.is((await ask(url, `/events?search=${'a'.repeat(3_000)}`)).statusCode, 414);
});

test('The server closes /events if it cannot make the content, so that the browser reconnects', async (t) => {
  const url = await start(t, () => Promise.reject(new Error('broken')));
  const events = await listen(t, url);
  await events.closed;
  t.is((await fetch(`${url}/healthz`)).status, 200);
});

test('LiveUpdates removes a browser that has gone, and makes no content without browsers', async (t) => {
  let looks = 0;
  const look = async (): Promise<PageView> => {
    looks++;
    return view;
  };
  const live = new LiveUpdates({ look, intervalMs: 2 });
  const server = createServer((incoming, response) => live.add(incoming, response, new URLSearchParams()));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const { port } = server.address() as { port: number };
  const events = await listen(t, `http://127.0.0.1:${port}`);
  await events.next(5);
  t.is(live.browsers, 1);
  await until(() => looks > 3);
  events.close();
  await until(() => live.browsers === 0);
  const before = looks;
  // 25 intervals.
  await delay(50);
  t.is(looks, before);
  const again = await listen(t, `http://127.0.0.1:${port}`);
  await again.next(5);
  live.close();
  await again.closed;
});

test('The server answers a scrape while one source holds all connections that it may have', async (t) => {
  const url = await start(t);
  const other = await hold(t, url, '127.0.0.2', '');
  const held: Socket[] = [];
  // Half a request, and no more.
  for (let at = 0; at < 100; at++) held.push(await hold(t, url, '127.0.0.3', 'GET /metrics HTTP/1.1\r\n'));
  for (const path of ['/metrics', '/healthz']) t.is((await fetch(`${url}${path}`)).status, 200);
  await haveEnded(held, 38);
  t.true(held[0]?.closed);
  t.false(held.at(-1)?.closed);
  t.false(other.closed);
});

test('The server closes idle connections of a source before those with a request', async (t) => {
  const url = await start(t);
  const busy = await hold(t, url, '127.0.0.1', `GET /events HTTP/1.1\r\nHost: ${new URL(url).host}\r\n\r\n`);
  await once(busy, 'data');
  const idle: Socket[] = [];
  for (let at = 0; at < 100; at++) idle.push(await hold(t, url, '127.0.0.1', ''));
  await haveEnded(idle, 37);
  t.false(busy.closed);
});

test('The server closes a scrape that takes no data, and serves one that takes it slowly', async (t) => {
  const help = 'x'.repeat(1_000);
  const many = Array.from({ length: 16_000 }, (_, n) => {
    return { name: `headgate_${n}_total`, type: 'counter' as const, help, parts: [] };
  });
  // The text of 16 MB is written with rests, on a busy machine for seconds.
  const idleTimeoutMs = 8_000;
  const url = new URL(
    await start(t, undefined, { metrics: { round: async () => [], own: async () => many }, idleTimeoutMs }),
  );
  const connect = (): Socket => {
    const socket = createConnection(Number(url.port), url.hostname).on('error', () => undefined);
    socket.write('GET /metrics HTTP/1.0\r\n\r\n');
    return socket;
  };
  const stalled = connect().pause();
  const slow = connect();
  let taken = 0;
  slow.on('data', ({ length }) => {
    taken += length;
    slow.pause();
    setTimeout(() => slow.resume(), 10);
  });
  // With data that waits, Node closes a connection after two such times.
  await Promise.all([once(slow, 'close'), delay(3 * idleTimeoutMs)]);
  t.true(taken > 16_000_000, `${taken} bytes`);
  let got = 0;
  stalled.on('data', ({ length }) => {
    got += length;
  });
  stalled.resume();
  await once(stalled, 'close');
  t.true(got < 16_000_000, `${got} bytes`);
});

/** A connection that sends `text` and stays. */
async function hold(t: ExecutionContext, url: string, localAddress: string, text: string): Promise<Socket> {
  const { hostname: host, port } = new URL(url);
  const socket = createConnection({ host, port: Number(port), localAddress });
  socket.on('error', () => undefined).on('data', () => undefined);
  t.teardown(() => socket.destroy());
  await once(socket, 'connect');
  socket.write(text);
  return socket;
}

/** Resolves when so many of the connections have ended, or more. */
async function haveEnded(sockets: readonly Socket[], count: number): Promise<void> {
  while (sockets.filter(({ closed }) => closed).length < count) await delay(10);
}

/** The address of a server that shows `view`, or the given content. */
async function start(
  t: ExecutionContext<unknown>,
  look: (asked: URLSearchParams) => Promise<PageView> = async () => view,
  more: Partial<HealthServerOptions> = {},
): Promise<string> {
  const { server, address } = await startHealthServer(
    { address: '127.0.0.1', port: 0 },
    {
      metrics: { round: async () => [], own: async () => [] },
      alive: () => '',
      ready: () => '',
      look,
      ...more,
    },
  );
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://${address}`;
}

/** The head of a response; unlike `fetch` it sends any path and host unchanged. */
async function ask(
  url: string,
  path: string,
  headers: Record<string, string> = {},
): Promise<IncomingMessage> {
  const { hostname, port } = new URL(url);
  const outgoing = request({ hostname, port, path, headers, agent: false }).end();
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  response.on('error', () => undefined);
  response.destroy();
  return response;
}

interface Events {
  readonly closed: Promise<void>;
  /** The names of the next `count` events. */
  next(count: number): Promise<readonly string[]>;
  /** The data of the last event with a name. */
  last(name: string): unknown;
  close(): void;
}

async function listen(t: ExecutionContext<unknown>, url: string, question = ''): Promise<Events> {
  const outgoing = request(`${url}/events${question}`, { agent: false }).end();
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  t.teardown(() => response.destroy());
  t.is(response.headers['content-type'], 'text/event-stream');
  const events: { readonly name: string; readonly value: unknown }[] = [];
  let [text, read] = ['', 0];
  response.setEncoding('utf8').on('data', (chunk: string) => {
    const blocks = (text + chunk).split('\n\n');
    text = blocks.pop() ?? '';
    for (const block of blocks) {
      const [, name, value] = /^event: (\w+)\ndata: (.*)$/.exec(block) ?? [];
      if (name !== undefined && value !== undefined) events.push({ name, value: JSON.parse(value) });
    }
  });
  response.on('error', () => undefined);
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  response.once('close', resolve);
  return {
    closed,
    next: async (count) => {
      await until(() => events.length >= read + count);
      const names = events.slice(read, read + count).map(({ name }) => name);
      read += count;
      return names;
    },
    last: (name) => events.findLast((each) => each.name === name)?.value,
    close: () => response.destroy(),
  };
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  await eventually(async () => condition(), Boolean);
}
