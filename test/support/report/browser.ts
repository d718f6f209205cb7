// A headless Chromium, driven by the DevTools protocol (https://chromedevtools.github.io/devtools-protocol/).
// It has its own profile and connects only to the pages that tests open.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Deadline } from '../basics/deadline.ts';

const FLAGS = [
  '--headless=new',
  '--remote-debugging-port=0',
  '--no-first-run',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-extensions',
  '--hide-scrollbars',
];

type Message = Readonly<Record<string, unknown>>;

export class Browser {
  readonly #url: string;
  readonly #end: () => Promise<void>;

  /** `more`: flags for pages of other hosts. */
  static async start(more: readonly string[] = []): Promise<Browser> {
    const profile = await mkdtemp(join(tmpdir(), 'hg-browser-'));
    // Chromium has no sandbox as root.
    const flags = [...FLAGS, ...more, ...(process.getuid?.() === 0 ? ['--no-sandbox'] : [])];
    const child = spawn('chromium', [...flags, `--user-data-dir=${profile}`, 'about:blank'], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, HOME: profile },
    });
    const ended = once(child, 'close');
    let said = '';
    const { promise: url, resolve, reject } = Promise.withResolvers<string>();
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      said += chunk;
      const [, found] = /DevTools listening on (ws:\S+)/.exec(said) ?? [];
      if (found !== undefined) resolve(found);
    });
    child.once('error', reject).once('close', () => reject(new Error(`Chromium has ended: ${said}`)));
    const end = async (): Promise<void> => {
      child.kill('SIGKILL');
      await ended;
      await rm(profile, { recursive: true, force: true, maxRetries: 10 });
    };
    return new Browser(await url, end);
  }

  private constructor(url: string, end: () => Promise<void>) {
    this.#url = url;
    this.#end = end;
  }

  /** Opens a page that shares nothing with other pages. */
  async open(): Promise<Page> {
    const socket = new WebSocket(this.#url);
    await once(socket, 'open');
    const page = new Page(socket);
    await page.start();
    return page;
  }

  /** Ends Chromium. */
  close(): Promise<void> {
    return this.#end();
  }
}

export class Page {
  /** Errors of the console, the content security policy and the network. */
  readonly complaints: string[] = [];
  /** The URLs of documents that it has asked for, with those that it was sent to. */
  readonly visited: string[] = [];
  readonly #socket: WebSocket;
  readonly #answers = new Map<number, PromiseWithResolvers<Message>>();
  #session: string | undefined;
  #count = 0;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener('message', ({ data }) => this.#take(JSON.parse(String(data))));
  }

  async start(): Promise<void> {
    const { browserContextId } = await this.send('Target.createBrowserContext', { disposeOnDetach: true });
    const { targetId } = await this.send('Target.createTarget', { url: 'about:blank', browserContextId });
    const { sessionId } = await this.send('Target.attachToTarget', { targetId, flatten: true });
    this.#session = String(sessionId);
    for (const domain of ['Page', 'Runtime', 'Log', 'Network']) await this.send(`${domain}.enable`);
  }

  /** Closes the page and its context. */
  close(): void {
    this.#socket.close();
  }

  async go(url: string): Promise<void> {
    await this.send('Page.navigate', { url });
  }

  /** In pixels. */
  async resize(width: number, height: number): Promise<void> {
    const mobile = width < 600;
    await this.send('Emulation.setDeviceMetricsOverride', { width, height, mobile, deviceScaleFactor: 1 });
  }

  async prefer(scheme: 'light' | 'dark'): Promise<void> {
    await this.send('Emulation.setEmulatedMedia', {
      features: [{ name: 'prefers-color-scheme', value: scheme }],
    });
  }

  /** The value of an expression in the page, which must be JSON. */
  async value<Value>(expression: string): Promise<Value> {
    const { result, exceptionDetails } = await this.send('Runtime.evaluate', {
      expression,
      returnByValue: true,
      awaitPromise: true,
    });
    if (exceptionDetails !== undefined) throw new Error(`${expression}: ${JSON.stringify(exceptionDetails)}`);
    return (result as { readonly value: Value }).value;
  }

  /** The visible text of the page. */
  text(): Promise<string> {
    return this.value('document.body.innerText');
  }

  /** Waits until an expression in the page is true. During a navigation the expression may fail. */
  async until(expression: string, timeout = 15_000): Promise<void> {
    const deadline = new Deadline(timeout, 40);
    let last: unknown;
    do {
      await delay(20);
      try {
        if (await this.value(`Boolean(${expression})`)) return;
        last = 'it is false';
      } catch (error) {
        last = error;
      }
    } while (!deadline.isOver);
    const seen = [...this.complaints, await this.text()].join('\n');
    throw new Error(`Not within ${timeout} ms: ${expression} (${last})\n${seen}`);
  }

  /** A screenshot of the whole page. */
  async picture(): Promise<Buffer> {
    const { data } = await this.send('Page.captureScreenshot', { captureBeyondViewport: true });
    return Buffer.from(String(data), 'base64');
  }

  send(method: string, params: Message = {}): Promise<Message> {
    const id = ++this.#count;
    const answer = Promise.withResolvers<Message>();
    this.#answers.set(id, answer);
    this.#socket.send(JSON.stringify({ id, method, params, sessionId: this.#session }));
    return answer.promise;
  }

  #take({ id, method, params, result, error }: Message): void {
    const answer = this.#answers.get(Number(id));
    this.#answers.delete(Number(id));
    if (error !== undefined) answer?.reject(new Error(JSON.stringify(error)));
    else answer?.resolve(result as Message);
    if (method === 'Network.requestWillBeSent' && (params as Message).type === 'Document')
      this.visited.push(String((params as { request: Message }).request.url));
    const isComplaint =
      method === 'Runtime.exceptionThrown' ||
      (method === 'Runtime.consoleAPICalled' &&
        ['error', 'warning'].includes(String((params as Message).type))) ||
      (method === 'Log.entryAdded' && (params as { entry: Message }).entry.level !== 'verbose');
    if (isComplaint) this.complaints.push(JSON.stringify(params));
  }
}
