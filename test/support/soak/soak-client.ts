// The clients of a soak, a process on their host. It reads lists of targets, a line of JSON each, answers `follows`, and asks
// all of them all the time, each by one lane; `report` on a line makes it print a SoakReport. A kept connection that ends
// before an answer has begun is opened again once, so is one with status 421, and a datagram is sent again for five seconds, as
// real clients do.

import { createSocket } from 'node:dgram';
import http, { type IncomingHttpHeaders } from 'node:http';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import https from 'node:https';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';

export interface SoakTarget {
  readonly name: string;
  readonly kind: 'new' | 'kept' | 'tls' | 'h2' | 'udp';
  readonly address: string;
  readonly port: number;
  readonly host?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** PEM; of the server's authority, and the client's own. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  /** Members that may answer; `:9001` is any address. An empty list: no member may ever answer. */
  readonly members: readonly string[];
  /** A kept connection is opened again when it changes. */
  readonly generation?: number;
  /** Between an answer and the next request, at least. */
  readonly pauseMs?: number;
}

export interface SoakReport {
  /** Name of a target → requests that ended. */
  readonly requests: Readonly<Record<string, number>>;
  /** Should have been answered and were not, or by another member: the first hundred, each with its time. */
  readonly failed: readonly string[];
  /** Should have been refused and were not. */
  readonly letThrough: readonly string[];
  readonly failures: number;
  readonly passes: number;
}

const TIMEOUT_MS = 10_000;
const DATAGRAM_EVERY_MS = 500;
const DATAGRAM_TIMEOUT_MS = 5_000;
const MOST_TEXTS = 100;
const PAUSE_MS = Number(process.env.SOAK_PAUSE_MS ?? 5);

interface Answer {
  /** undefined: nothing was answered. */
  readonly status: number | undefined;
  readonly text: string;
}

const requests: Record<string, number> = {};
const failed: string[] = [];
const letThrough: string[] = [];
let [failures, passes] = [0, 0];
let targets = new Map<string, SoakTarget>();
const lanes = new Set<string>();

createInterface({ input: process.stdin }).on('line', (line) => {
  if (line === 'report') {
    console.log(JSON.stringify({ requests, failed, letThrough, failures, passes } satisfies SoakReport));
    return;
  }
  targets = new Map((JSON.parse(line) as SoakTarget[]).map((target) => [target.name, target]));
  for (const name of targets.keys()) if (!lanes.has(name)) void lane(name);
  console.log('follows');
});

async function lane(name: string): Promise<void> {
  lanes.add(name);
  const connections = new Connections();
  for (let target = targets.get(name); target !== undefined; target = targets.get(name)) {
    const answer = await connections.ask(target);
    requests[name] = (requests[name] ?? 0) + 1;
    judge(target, answer);
    await delay(target.pauseMs ?? PAUSE_MS);
  }
  connections.close();
  lanes.delete(name);
}

/** The lists may have changed since the request was sent: a member of before or of now may answer. */
function judge(before: SoakTarget, { status, text }: Answer): void {
  const now = targets.get(before.name) ?? before;
  const line = `${new Date().toISOString()} ${before.name}: ${status ?? 'no answer'} ${text.slice(0, 80)}`;
  const members = [...before.members, ...now.members];
  if (members.length === 0) {
    if (status === undefined || status >= 400) return;
    passes++;
    if (letThrough.length < MOST_TEXTS) letThrough.push(line);
    return;
  }
  if (status === 200 && members.some((member) => text === member || text.endsWith(member))) return;
  failures++;
  if (failed.length < MOST_TEXTS) failed.push(line);
}

/** The connections that a lane keeps. */
class Connections {
  #agent: http.Agent | undefined;
  #generation: number | undefined;
  #session: ClientHttp2Session | undefined;

  /** Status 421 asks for another connection: this one is from before a change of what clients must show. */
  async ask(target: SoakTarget): Promise<Answer> {
    const answer = await this.#ask(target);
    if (answer.status !== 421 || target.members.length === 0) return answer;
    this.close();
    return this.#ask(target);
  }

  async #ask(target: SoakTarget): Promise<Answer> {
    try {
      if (target.kind === 'udp') return await askByDatagram(target);
      if (target.kind === 'h2') return await this.#askInSession(target);
      return await this.#askByHttp(target);
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      return { status: undefined, text: code ?? message };
    }
  }

  close(): void {
    this.#agent?.destroy();
    this.#agent = undefined;
    this.#session?.destroy();
    this.#session = undefined;
  }

  #askByHttp(target: SoakTarget, isRepeated = false): Promise<Answer> {
    const { kind, address, port, host = address, path = '/', headers, ca, cert, key } = target;
    if (target.generation !== this.#generation) {
      this.#agent?.destroy();
      this.#agent = undefined;
      this.#generation = target.generation;
    }
    if (kind === 'kept') this.#agent ??= new http.Agent({ keepAlive: true, maxSockets: 1 });
    const tls = kind === 'tls' ? { ca, cert, key, servername: host } : {};
    const options = {
      ...{ host: address, port, path, timeout: TIMEOUT_MS, ...tls },
      agent: kind === 'kept' ? this.#agent : false,
      headers: { host, ...headers },
    };
    return new Promise((resolve, reject) => {
      const request = (kind === 'tls' ? https : http).request(options as https.RequestOptions, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('end', () => resolve({ status: response.statusCode, text }));
        response.on('error', reject);
      });
      request.on('timeout', () => request.destroy(new Error(`silent for ${TIMEOUT_MS} ms`)));
      request.on('error', (error) => {
        if (request.reusedSocket && !isRepeated) this.#askByHttp(target, true).then(resolve, reject);
        else reject(error);
      });
      request.end();
    });
  }

  async #askInSession(target: SoakTarget): Promise<Answer> {
    const wasOpen = this.#session !== undefined;
    try {
      return await this.#stream(target);
    } catch (error) {
      this.#session?.destroy();
      this.#session = undefined;
      if (!wasOpen) throw error;
      return this.#stream(target);
    }
  }

  #stream({ address, port, host = address, path = '/', headers = {}, ca, cert, key }: SoakTarget) {
    return new Promise<Answer>((resolve, reject) => {
      this.#session ??= this.#open(`https://${address}:${port}`, { ca, cert, key, servername: host });
      const session = this.#session;
      session.once('error', reject);
      const stream = session.request({ ':path': path, ':authority': host, ...headers });
      let [text, status]: [string, number | undefined] = ['', undefined];
      stream.setEncoding('utf8').setTimeout(TIMEOUT_MS, () => stream.destroy(new Error('silent')));
      stream.on('response', (response: IncomingHttpHeaders & { readonly ':status'?: number }) => {
        status = response[':status'];
      });
      stream.on('data', (chunk: string) => {
        text += chunk;
      });
      stream.on('error', reject);
      stream.on('close', () => {
        session.off('error', reject);
        if (status === undefined) reject(new Error('The stream ended without an answer'));
        else resolve({ status, text });
      });
      stream.end();
    });
  }

  #open(url: string, options: object): ClientHttp2Session {
    const session = connectHttp2(url, options);
    const forget = (): void => {
      if (this.#session === session) this.#session = undefined;
    };
    session.on('error', forget).on('goaway', forget).on('close', forget);
    return session;
  }
}

/** Each question from a new port. */
function askByDatagram({ address, port }: SoakTarget): Promise<Answer> {
  const socket = createSocket('udp4');
  return new Promise((resolve) => {
    const send = (): void => socket.send('?', port, address);
    const again = setInterval(send, DATAGRAM_EVERY_MS);
    const end = (answer: Answer): void => {
      clearInterval(again);
      clearTimeout(over);
      socket.close();
      resolve(answer);
    };
    const over = setTimeout(() => end({ status: undefined, text: 'silent' }), DATAGRAM_TIMEOUT_MS);
    socket.on('error', () => undefined);
    socket.on('message', (text) => end({ status: 200, text: String(text) }));
    send();
  });
}
