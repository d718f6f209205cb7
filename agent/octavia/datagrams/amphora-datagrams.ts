// The listeners of UDP and SCTP of an amphora: their texts are stored as Octavia's controller pushes them, read into load
// balancers, served by the kernel, checked and reported.

import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { HeadgateError, messageOf } from '../../base/errors.ts';
import { serial } from '../../base/serial.ts';
import { writeAtomically } from '../../host/atomic-file.ts';
import type { Log } from '../../host/log.ts';
import { makeFolder } from '../../host/make-directory.ts';
import { ownerOf, ownerOfListener } from '../../model/names.ts';
import { ProbeProgram } from '../../nftables/checks/probe-program.ts';
import type { NftablesSettings } from '../../nftables/dataplane.ts';
import type { AmphoraDatagrams, DatagramListener } from '../parts.ts';
import { datagramBalancer, datagramKey, datagramListener } from './datagram-balancer.ts';
import { DatagramChecks } from './datagram-checks.ts';
import { reportedListener } from './datagram-report.ts';
import { type DatagramText, readDatagramText } from './datagram-text.ts';
import { KernelServer } from './kernel-server.ts';
import { UUID } from './uuid.ts';

export interface DatagramsOptions {
  /** The folder of the texts. */
  readonly folder: string;
  readonly settings: NftablesSettings;
  readonly log: Log;
}

interface Stored {
  readonly text: string;
  readonly read: DatagramText;
}

export class Datagrams implements AmphoraDatagrams {
  readonly #options: DatagramsOptions;
  readonly #server: KernelServer;
  readonly #checks: DatagramChecks;
  readonly #probes: ProbeProgram;
  readonly #turns = serial();
  /** By id. */
  readonly #stored = new Map<string, Stored>();
  /** Problems that were logged. */
  readonly #known = new Set<string>();

  constructor(options: DatagramsOptions) {
    const { settings, log } = options;
    this.#options = options;
    this.#probes = new ProbeProgram(settings.netns);
    this.#server = new KernelServer({
      settings,
      checkedMembers: (listener) => this.#checks.results(ownerOf(ownerOfListener(listener)).name, listener),
      log,
    });
    this.#checks = new DatagramChecks({
      probe: (probe, timeoutMs) => this.#probes.probe(probe, timeoutMs),
      refusals: () => this.#server.refusals(),
      wasDown: (listener, member) => this.#server.members(listener).get(member)?.isDown === true,
      onChanged: (id) => this.#server.checked(datagramKey(id)),
    });
  }

  /** Serves what was stored before; a text that cannot be read is logged. The namespace must be there. */
  start(): Promise<void> {
    return this.#turns.run(async () => {
      for (const id of await storedIn(this.#options.folder)) await this.#load(id);
      const texts = [...this.#stored.values()].map(({ read }) => read);
      await this.#server.start(texts.map(datagramBalancer));
      for (const text of texts) this.#adopt(text);
    });
  }

  /** Errors: OCTAVIA_INVALID, FILE_WRITE; NFT_FAILED if the kernel does not serve it. */
  put(id: string, text: string): Promise<void> {
    return this.#turns.run(async () => {
      const read = readDatagramText(text);
      if (read.listener !== id)
        throw new HeadgateError('OCTAVIA_INVALID', `The text is that of listener ${read.listener}`, {
          retry: 'never',
        });
      await makeFolder(this.#options.folder, 0o755);
      await writeAtomically(fileOf(this.#options.folder, id), [text], { mode: 0o644 });
      this.#stored.set(id, { text, read });
      this.#adopt(read);
      await this.#server.put(datagramBalancer(read));
    });
  }

  async get(id: string): Promise<string | undefined> {
    return this.#stored.get(id)?.text;
  }

  remove(id: string): Promise<void> {
    return this.#turns.run(async () => {
      if (!UUID.test(id)) return;
      await rm(fileOf(this.#options.folder, id), { force: true });
      this.#stored.delete(id);
      this.#checks.remove(id);
      await this.#server.remove(datagramKey(id));
    });
  }

  ids(): readonly string[] {
    return [...this.#stored.keys()];
  }

  /** Listeners that the user has enabled; without those that the kernel does not serve, so that the amphora is replaced. */
  async report(): Promise<readonly DatagramListener[]> {
    const enabled = [...this.#stored.values()].map(({ read }) => read).filter(({ isEnabled }) => isEnabled);
    const isServed = ({ listener, servers }: DatagramText): boolean =>
      servers.every((server) => this.#server.serves(datagramListener(listener, server)));
    const members = (listener: string) => this.#server.members(listener);
    const traffic = await this.#server.traffic();
    return enabled.filter(isServed).map((text) => reportedListener(text, { members, traffic }));
  }

  /** The rules stay. */
  async close(): Promise<void> {
    this.#checks.close();
    this.#probes.close();
    await this.#turns.idle();
    await this.#server.close();
  }

  #adopt(text: DatagramText): void {
    this.#checks.set(text);
    for (const { object, message } of datagramBalancer(text).problems) {
      if (this.#known.has(`${object} ${message}`)) continue;
      this.#known.add(`${object} ${message}`);
      this.#options.log.warn(message, { object });
    }
  }

  async #load(id: string): Promise<void> {
    try {
      const text = await readFile(fileOf(this.#options.folder, id), 'utf8');
      this.#stored.set(id, { text, read: readDatagramText(text) });
    } catch (error) {
      this.#options.log.error('Cannot serve a stored listener', { listener: id, error: messageOf(error) });
    }
  }
}

const PREFIX = 'octavia-keepalivedlvs-';
const SUFFIX = '.conf';

function fileOf(folder: string, id: string): string {
  return join(folder, `${PREFIX}${id}${SUFFIX}`);
}

async function storedIn(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder).catch(() => []);
  return names
    .filter((name) => name.startsWith(PREFIX) && name.endsWith(SUFFIX))
    .map((name) => name.slice(PREFIX.length, -SUFFIX.length))
    .filter((id) => UUID.test(id))
    .sort();
}
