// An amphora with Octavia's own agent (reference_agent.py) and a driver of its own, beside one of Headgate: its interface is
// plugged as the reference does it, by Headgate's code, which agrees with it.

import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { until } from '../basics/until.ts';
import type { DriverAnswer } from './amphora-agent.ts';
import { amphoraCertificates } from './amphora-certificates.ts';
import type { AmphoraHost } from './amphora-host.ts';

const PYTHON = '/usr/bin/python3';
const PORT = 9_444;

export interface ReferenceOptions {
  readonly amphora: string;
  /** The name of its namespace, in which its interface is. */
  readonly netns: string;
  readonly vrrpAddress: string;
  readonly peer: { readonly amphora: string; readonly vrrpAddress: string };
}

export class ReferenceAmphora {
  readonly base: string;
  readonly #driver: ChildProcess;
  readonly #answers: ((answer: DriverAnswer) => void)[] = [];

  static async create(host: AmphoraHost, options: ReferenceOptions): Promise<ReferenceAmphora> {
    const { network } = host;
    const folder = join(host.folder, options.netns);
    const [base, units, certificates] = ['base', 'units', 'certs'].map((each) => join(folder, each));
    for (const each of [base, units, certificates]) await mkdir(each ?? '', { recursive: true });
    const tls = await amphoraCertificates(folder, options.amphora);
    const python = (script: string): ChildProcess =>
      network.start('node', PYTHON, fileURLToPath(new URL(script, import.meta.url)));
    const paths = { base, certificates, folder: units, namespace: network.netns(options.netns) };
    const own = { serverCertificate: tls.server, clientAuthority: tls.clientAuthority, port: PORT };
    const topology = 'ACTIVE_STANDBY';
    python('reference_agent.py').stdin?.write(`${JSON.stringify({ ...paths, ...own, topology })}\n`);
    const driver = python('controller.py');
    const { amphora, vrrpAddress, peer } = options;
    driver.stdin?.write(
      `${JSON.stringify({
        ...{ address: '127.0.0.1', port: PORT, clientCertificate: tls.client },
        ...{ serverAuthority: tls.serverAuthority, base, certificates, amphora, vrrpAddress, peer },
      })}\n`,
    );
    const reference = new ReferenceAmphora(base ?? '', driver);
    await reference.#ready();
    return reference;
  }

  private constructor(base: string, driver: ChildProcess) {
    this.base = base;
    this.#driver = driver;
  }

  /** Errors: what the driver raises. */
  async order(order: object): Promise<unknown> {
    const { result, error, kind } = await this.#ask(order);
    if (error !== undefined) throw new Error(`${kind}: ${error}`);
    return result;
  }

  /** A method of Octavia's REST client. Errors: what it raises. */
  client(method: string, ...args: readonly unknown[]): Promise<unknown> {
    return this.order({ call: 'client', method, arguments: args });
  }

  async #ready(): Promise<void> {
    const lines = createInterface({ input: this.#driver.stdout as NodeJS.ReadableStream });
    await once(lines, 'line');
    lines.on('line', (line) => this.#answers.shift()?.(JSON.parse(line) as DriverAnswer));
    await until('the reference agent answers', async () => {
      const { error } = await this.#ask({ call: 'client', method: 'get_info', arguments: [] });
      return error === undefined;
    });
  }

  #ask(order: object): Promise<DriverAnswer> {
    const { promise, resolve } = Promise.withResolvers<DriverAnswer>();
    this.#answers.push(resolve);
    this.#driver.stdin?.write(`${JSON.stringify(order)}\n`);
    return promise;
  }
}
