// Members whose answers to probes a test sets: HTTP and HTTPS with any status and body, slowly or never, and the health
// checking protocol of gRPC on a real HTTP/2 server.

import { once } from 'node:events';
import { createServer, type Server as HttpServer, type RequestListener } from 'node:http';
import * as http2 from 'node:http2';
import { createServer as createTlsServer } from 'node:https';
import type { ExecutionContext } from 'ava';

export interface Answer {
  status?: number;
  body?: string;
  /** Accepts connections and never answers. */
  isSilent?: boolean;
}

export interface Probe {
  readonly method: string;
  readonly path: string;
  readonly host: string | undefined;
}

export interface ProbedMember {
  /** Sets the answer to probes, which request paths below /healthz. Clients get the member's address. */
  answer: Answer;
  readonly probes: readonly Probe[];
  /** The server names of TLS connections. */
  readonly names: ReadonlySet<string>;
  /** The requests of clients. */
  requests: number;
}

/** A key and its certificate. */
export interface ServerCredentials {
  readonly key: string;
  readonly cert: string;
}

/** An HTTP member, or an HTTPS member with a key and a certificate; it ends with the test. */
export async function startProbedMember(
  t: ExecutionContext<unknown>,
  address: string,
  port: number,
  tls?: ServerCredentials,
): Promise<ProbedMember> {
  const probes: Probe[] = [];
  const names = new Set<string>();
  const member = { answer: {} as Answer, probes, names, requests: 0 };
  const listen = (answer: RequestListener): HttpServer => {
    if (tls === undefined) return createServer(answer);
    const SNICallback = (name: string, done: (error: Error | null) => void): void => {
      names.add(name);
      done(null);
    };
    return createTlsServer({ ...tls, SNICallback }, answer);
  };
  const server = listen((request, response) => {
    if (!request.url?.startsWith('/healthz')) {
      member.requests++;
      response.end(address);
      return;
    }
    probes.push({ method: request.method ?? '', path: request.url ?? '', host: request.headers.host });
    const { status = 200, body = address, isSilent = false } = member.answer;
    if (isSilent) return;
    response.statusCode = status;
    response.end(body);
  });
  await listening(t, server, address, port);
  return member;
}

export interface GrpcMember {
  /** A status of grpc.health.v1.HealthCheckResponse: 1 is SERVING, 2 is NOT_SERVING. */
  health: number;
  /** The path, the authority and the hexadecimal message of each probe. */
  readonly probes: readonly (readonly [path: string, authority: string, message: string])[];
}

/** A gRPC server with only the health service, with TLS if a key and a certificate are given. */
export async function startGrpcMember(
  t: ExecutionContext<unknown>,
  address: string,
  port: number,
  tls?: ServerCredentials,
): Promise<GrpcMember> {
  const probes: [string, string, string][] = [];
  const member = { health: 1, probes };
  const server = tls === undefined ? http2.createServer() : http2.createSecureServer(tls);
  server.on('stream', (stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders) => {
    const chunks: Buffer[] = [];
    stream.on('error', () => undefined);
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('end', () => {
      probes.push([
        headers[':path'] ?? '',
        headers[':authority'] ?? '',
        Buffer.concat(chunks).toString('hex'),
      ]);
      const isGrpc = headers['content-type'] === 'application/grpc' && headers.te === 'trailers';
      stream.respond(
        { ':status': isGrpc ? 200 : 415, 'content-type': 'application/grpc' },
        { waitForTrailers: true },
      );
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
      stream.end(Buffer.from([0, 0, 0, 0, 2, 8, member.health]));
    });
  });
  await listening(t, server, address, port);
  return member;
}

async function listening(
  t: ExecutionContext<unknown>,
  server: HttpServer | http2.Http2Server | http2.Http2SecureServer,
  address: string,
  port: number,
): Promise<void> {
  const sockets = new Set<{ destroy(): void }>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('sessionError', () => undefined);
  server.listen(port, address);
  await once(server, 'listening');
  t.teardown(async () => {
    const closed = once(server, 'close');
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  });
}
