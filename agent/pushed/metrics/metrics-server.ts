// Answers the listeners by which Octavia's users read metrics: HAProxy forwards them to this unix socket, and the answer is
// HAProxy's own text with Octavia's names, line by line as it comes.

import { once } from 'node:events';
import { chmod, rm } from 'node:fs/promises';
import type { Server, ServerResponse } from 'node:http';
import { cpus, freemem, loadavg, totalmem } from 'node:os';
import { HeadgateError } from '../../base/errors.ts';
import { http } from '../../host/node-http.ts';
import { type MachineLoad, machineMetrics, octaviaMetrics } from './octavia-metrics.ts';

export interface MetricsServerOptions {
  /** The agent's socket, which HAProxy's user may write to. */
  readonly socket: string;
  /** HAProxy's socket, which answers `/metrics`. */
  readonly source: string;
  readonly load?: () => MachineLoad;
}

const SOCKET_MODE = 0o666;
/** More wait in HAProxy. */
const MAX_CONNECTIONS = 8;
const SOURCE_TIMEOUT_MS = 5_000;

export class MetricsServer {
  readonly #options: MetricsServerOptions;
  #server: Server | undefined;

  constructor(options: MetricsServerOptions) {
    this.#options = options;
  }

  /** Does nothing if it listens already. Errors: LISTEN_FAILED. */
  async listen(): Promise<void> {
    if (this.#server !== undefined) return;
    const { socket } = this.#options;
    const server = http.createServer((_, response) => this.#answer(response));
    server.maxConnections = MAX_CONNECTIONS;
    this.#server = server;
    try {
      await rm(socket, { force: true });
      server.listen(socket);
      await once(server, 'listening');
      await chmod(socket, SOCKET_MODE);
    } catch (cause) {
      this.close();
      throw new HeadgateError('LISTEN_FAILED', `Cannot listen on "${socket}"`, { cause });
    }
    server.unref();
  }

  close(): void {
    this.#server?.close();
    this.#server?.closeAllConnections();
    this.#server = undefined;
  }

  #answer(response: ServerResponse): void {
    const { source, load = loadOfMachine } = this.#options;
    const fail = (): void => {
      if (!response.headersSent) response.writeHead(502, { connection: 'close' });
      response.end();
    };
    const asked = http.request(
      { socketPath: source, path: '/metrics', timeout: SOURCE_TIMEOUT_MS },
      (found) => {
        if (found.statusCode !== 200) {
          found.resume();
          fail();
          return;
        }
        response.writeHead(200, {
          'cache-control': 'no-cache',
          'content-type': 'text/plain; version=0.0.4',
          connection: 'close',
        });
        response.write(machineMetrics(load()));
        let rest = '';
        found.setEncoding('utf8');
        found.on('data', (chunk: string) => {
          const lines = rest + chunk;
          const end = lines.lastIndexOf('\n') + 1;
          rest = lines.slice(end);
          if (response.write(octaviaMetrics(lines.slice(0, end)))) return;
          found.pause();
          response.once('drain', () => found.resume());
        });
        found.on('end', () => response.end(octaviaMetrics(rest)));
        found.on('error', () => response.destroy());
      },
    );
    asked.on('timeout', () => asked.destroy());
    asked.on('error', fail);
    asked.end();
    response.on('close', () => asked.destroy());
  }
}

function loadOfMachine(): MachineLoad {
  const [minute = 0] = loadavg();
  return { cpu: (minute / cpus().length) * 100, memory: (1 - freemem() / totalmem()) * 100 };
}
