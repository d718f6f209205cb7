// HTTP CONNECT and SOCKS5 (RFC 1928) proxies for tests. They connect to loopback for every name and record the names.

import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';

export interface TestProxy {
  readonly port: number;
  /** The requested `name:port`, in order. */
  readonly targets: string[];
  /** The clients' credentials: `Basic ...`. */
  readonly authorizations: (string | undefined)[];
  close(): void;
}

export async function httpProxy(): Promise<TestProxy> {
  const [targets, authorizations]: [string[], (string | undefined)[]] = [[], []];
  const server = createHttpServer();
  server.on('connect', ({ url = '', headers }, client: Duplex, head: Buffer) => {
    targets.push(url);
    authorizations.push(headers['proxy-authorization']);
    join(client, Number(url.slice(url.lastIndexOf(':') + 1)), 'HTTP/1.1 200 OK\r\n\r\n', head);
  });
  return { ...(await listening(server)), targets, authorizations };
}

/** Accepts clients without credentials. */
export async function socksProxy(): Promise<TestProxy> {
  const targets: string[] = [];
  const server = createServer(async (client) => {
    client.on('error', () => undefined);
    const greeting = await read(client);
    if (greeting?.[0] !== 5) return void client.destroy();
    client.write(Buffer.from([5, 0]));
    const request = await read(client);
    if (request === undefined) return;
    const isName = request[3] === 3;
    const end = isName ? 5 + (request[4] ?? 0) : 8;
    const host = isName ? request.subarray(5, end).toString('latin1') : request.subarray(4, end).join('.');
    const port = request.readUInt16BE(end);
    targets.push(`${host}:${port}`);
    join(client, port, Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]));
  });
  return { ...(await listening(server)), targets, authorizations: [] };
}

/** `answer` is sent to the client first; `head` is the text that the client has sent already. */
function join(client: Duplex, port: number, answer: string | Buffer, head: Buffer = Buffer.alloc(0)): void {
  const server = connect(port, '127.0.0.1', () => {
    client.write(answer);
    server.write(head);
    server.pipe(client).pipe(server);
  });
  for (const socket of [client, server]) socket.on('error', () => undefined);
  client.on('close', () => server.destroy());
  server.on('close', () => client.destroy());
}

/** A client waits for the answer to each message, so each chunk is one message. */
async function read(client: Socket): Promise<Buffer | undefined> {
  const ended = once(client, 'close').then(() => []);
  const [bytes] = (await Promise.race([once(client, 'data'), ended])) as [Buffer?];
  return bytes;
}

async function listening(server: Server): Promise<Pick<TestProxy, 'port' | 'close'>> {
  const clients = new Set<Socket>();
  server.on('connection', (client) => {
    clients.add(client);
    client.on('close', () => clients.delete(client));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = (): void => {
    server.close();
    for (const client of clients) client.destroy();
  };
  return { port: (server.address() as AddressInfo).port, close };
}
