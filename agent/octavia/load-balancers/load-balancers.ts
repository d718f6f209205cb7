// The load balancers that the controller has pushed: checks a text, stores it, runs it. The calls for one load balancer come
// one after another, those for several side by side.

import { createHash } from 'node:crypto';
import { HeadgateError, messageOf } from '../../base/errors.ts';
import { type Serial, serial } from '../../base/serial.ts';
import type { Log } from '../../host/log.ts';
import type { PushedHaproxy, PushedStatus, PushResult, StatRow } from '../../pushed/pushed.ts';
import { strippedText } from '../../pushed/text/pushed-text.ts';
import type { RunningText } from '../heartbeat/message.ts';
import type { CertificateStore } from '../store/certificate-store.ts';
import type { TextStore } from '../store/text-store.ts';
import { type ReportedText, readReported } from '../text/reported-text.ts';

/** What became of a push. */
export type PushOutcome = PushResult | 'refused' | 'failed';

export interface LoadBalancersOptions {
  readonly texts: TextStore;
  readonly certificates: CertificateStore;
  /** The HAProxy of a load balancer, by its id. */
  readonly haproxyOf: (id: string, onReplace: (rows: readonly StatRow[]) => void) => PushedHaproxy;
  readonly observers: PushObservers;
  readonly log: Log;
}

export interface PushObservers {
  /** What a worker has counted that is about to be replaced. */
  before(rows: readonly StatRow[]): void;
  /** Another worker serves these listeners. */
  restarted(listeners: readonly string[]): void;
  forgotten(listeners: readonly string[]): void;
  pushed(outcome: PushOutcome): void;
  /** Another worker serves: the VIPs are announced, as Octavia's agent does. */
  served(): void;
  /** Load balancers whose HAProxy should run have come or gone. */
  changed(): Promise<void>;
}

/** A load balancer as the commands show it. */
export interface LoadBalancerView {
  readonly id: string;
  readonly uploaded: ReportedText;
  readonly running: ReportedText | undefined;
  /** HAProxy should run: a text was run, and the load balancer is not stopped. */
  readonly isWanted: boolean;
  /** The uploaded text does not run. */
  readonly isBehind: boolean;
  readonly haproxy: PushedStatus;
}

interface LoadBalancer {
  readonly haproxy: PushedHaproxy;
  /** As in the view. */
  isWanted: boolean;
  uploaded: string;
  /** The text of the worker; undefined if none runs. */
  running: string | undefined;
  /** Read from `uploaded` and `running`. */
  views: { uploaded: ReportedText; running: ReportedText | undefined };
}

export class LoadBalancers {
  readonly #options: LoadBalancersOptions;
  readonly #known = new Map<string, LoadBalancer>();
  /** By load balancer, also one without a text. */
  readonly #turns = new Map<string, Serial>();

  constructor(options: LoadBalancersOptions) {
    this.#options = options;
  }

  /** Takes over what runs, and starts what does not, as after a reboot. Never rejects. */
  async restore(): Promise<void> {
    const { texts, log } = this.#options;
    for (const id of await texts.ids())
      await this.#inTurn(id, () => this.#restoreOne(id)).catch((error: unknown) =>
        log.error('Cannot serve a load balancer again', { id, error: messageOf(error) }),
      );
    await this.#options.observers.changed();
  }

  /** Errors: HAPROXY_REJECTED; FILE_WRITE, the old text then stays. */
  upload(id: string, pushed: string): Promise<void> {
    return this.#inTurn(id, async () => {
      const { texts, haproxyOf, observers } = this.#options;
      const text = strippedText(pushed);
      const known = this.#known.get(id);
      const haproxy = known?.haproxy ?? haproxyOf(id, observers.before);
      try {
        await haproxy.check(text);
        await texts.write(id, 'uploaded', text);
      } catch (error) {
        if (known === undefined) haproxy.close();
        if (error instanceof HeadgateError && error.code === 'HAPROXY_REJECTED') observers.pushed('refused');
        throw error;
      }
      if (known === undefined) this.#add(id, haproxy, text);
      else this.#keep(known, text, known.running);
    });
  }

  /** undefined if there is no such load balancer. */
  text(id: string): string | undefined {
    return this.#known.get(id)?.uploaded;
  }

  has(id: string): boolean {
    return this.#known.has(id);
  }

  /** Brings HAProxy to the uploaded text. Errors: OCTAVIA_NOT_FOUND, HAPROXY_START, HAPROXY_RELOAD. */
  serve(id: string): Promise<PushResult> {
    return this.#inTurn(id, async () => {
      const loadBalancer = this.#of(id);
      const result = await this.#run(id, loadBalancer);
      this.#options.observers.pushed(result);
      return result;
    });
  }

  /** Errors: OCTAVIA_NOT_FOUND. */
  stop(id: string): Promise<void> {
    return this.#inTurn(id, async () => {
      const loadBalancer = this.#of(id);
      loadBalancer.isWanted = false;
      await loadBalancer.haproxy.stop();
      this.#keep(loadBalancer, loadBalancer.uploaded, undefined);
      await this.#options.observers.changed();
    });
  }

  /** With texts and certificates; one that is not there is no error. */
  remove(id: string): Promise<void> {
    return this.#inTurn(id, async () => {
      const { texts, certificates, observers } = this.#options;
      const loadBalancer = this.#known.get(id);
      if (loadBalancer === undefined) return;
      await loadBalancer.haproxy.stop();
      loadBalancer.haproxy.close();
      this.#known.delete(id);
      await certificates.removeAll(id);
      await texts.remove(id);
      observers.forgotten(listenersOf(loadBalancer));
      await observers.changed();
    });
  }

  readCertificate(id: string, name: string): Promise<Buffer | undefined> {
    return this.#inTurn(id, () => this.#options.certificates.read(id, name));
  }

  /** Errors: FILE_WRITE. */
  writeCertificate(id: string, name: string, content: Buffer): Promise<void> {
    return this.#inTurn(id, () => this.#options.certificates.write(id, name, content));
  }

  removeCertificate(id: string, name: string): Promise<void> {
    return this.#inTurn(id, () => this.#options.certificates.remove(id, name, this.#namedBy(id)));
  }

  views(): readonly LoadBalancerView[] {
    return [...this.#known].map(([id, { haproxy, isWanted, uploaded, running, views }]) => ({
      id,
      ...views,
      isWanted,
      isBehind: uploaded !== running,
      haproxy: haproxy.status(),
    }));
  }

  /** Load balancers whose HAProxy answers. */
  async running(): Promise<readonly RunningText[]> {
    const all = await Promise.all([...this.#known.values()].map(runningText));
    return all.filter((each) => each !== undefined);
  }

  /** Waits for the work under way. HAProxy continues. */
  async close(): Promise<void> {
    await Promise.all([...this.#turns.values()].map((turns) => turns.idle()));
    for (const { haproxy } of this.#known.values()) haproxy.close();
  }

  async #restoreOne(id: string): Promise<void> {
    const { texts, haproxyOf, observers, log } = this.#options;
    const uploaded = await texts.read(id, 'uploaded');
    if (uploaded === undefined) return;
    const haproxy = haproxyOf(id, observers.before);
    const loadBalancer = this.#add(id, haproxy, uploaded);
    loadBalancer.isWanted = true;
    const last = await texts.read(id, 'running');
    await haproxy.adopt();
    const { isRunning, text: served } = haproxy.status();
    if (isRunning) {
      const running = [last, uploaded].find((text) => text !== undefined && md5(text) === served);
      if (running !== undefined) this.#keep(loadBalancer, uploaded, running);
      log.info('HAProxy of a load balancer runs', { id, text: served, isUploaded: running === uploaded });
      if (running !== undefined) return;
    }
    // After a reboot, or with a worker whose text is not known. The last text that ran, if the new one was never run.
    await this.#run(id, loadBalancer, isRunning ? uploaded : (last ?? uploaded));
    log.info('HAProxy of a load balancer is started again', { id });
  }

  async #run(id: string, loadBalancer: LoadBalancer, text = loadBalancer.uploaded): Promise<PushResult> {
    const { texts, certificates, observers, log } = this.#options;
    const { haproxy } = loadBalancer;
    const former = listenersOf(loadBalancer);
    if (!loadBalancer.isWanted) {
      loadBalancer.isWanted = true;
      await observers.changed();
    }
    let result: PushResult;
    try {
      result = await haproxy.run(text);
    } catch (error) {
      observers.pushed('failed');
      log.error('Cannot run the text of a load balancer', { id, error: messageOf(error) });
      throw error;
    }
    this.#keep(loadBalancer, loadBalancer.uploaded, text);
    const now = listenersOf(loadBalancer);
    if (result === 'reload') {
      observers.restarted(now);
      observers.served();
    }
    observers.forgotten(former.filter((listener) => !now.includes(listener)));
    log.info('A load balancer runs its text', { id, by: result, cause: haproxy.status().cause });
    // Traffic is served: what follows is for the next start, and its failure is no failure of the push.
    try {
      await texts.write(id, 'running', text);
      await certificates.sweep(id, this.#namedBy(id));
    } catch (error) {
      log.warn('Cannot store the text that runs', { id, error: messageOf(error) });
    }
    return result;
  }

  #add(id: string, haproxy: PushedHaproxy, uploaded: string): LoadBalancer {
    const views = { uploaded: readReported(uploaded), running: undefined };
    const added: LoadBalancer = { haproxy, isWanted: false, uploaded, running: undefined, views };
    this.#known.set(id, added);
    return added;
  }

  #keep(loadBalancer: LoadBalancer, uploaded: string, running: string | undefined): void {
    const known = new Map([
      [loadBalancer.uploaded, loadBalancer.views.uploaded],
      [loadBalancer.running, loadBalancer.views.running],
    ]);
    const view = (text: string): ReportedText => known.get(text) ?? readReported(text);
    const read = view(uploaded);
    const ran = running === uploaded ? read : running === undefined ? undefined : view(running);
    Object.assign(loadBalancer, { uploaded, running, views: { uploaded: read, running: ran } });
  }

  #namedBy(id: string): ReadonlySet<string> {
    const views = this.#known.get(id)?.views;
    return new Set([...(views?.uploaded.files ?? []), ...(views?.running?.files ?? [])]);
  }

  #of(id: string): LoadBalancer {
    const found = this.#known.get(id);
    if (found !== undefined) return found;
    throw new HeadgateError('OCTAVIA_NOT_FOUND', `No loadbalancer with UUID: ${id}`, { retry: 'never' });
  }

  #turnsOf(id: string): Serial {
    const turns = this.#turns.get(id) ?? serial();
    this.#turns.set(id, turns);
    return turns;
  }

  #inTurn<T>(id: string, work: () => Promise<T>): Promise<T> {
    return this.#turnsOf(id).run(work);
  }
}

function listenersOf({ views }: LoadBalancer): readonly string[] {
  return (views.running ?? views.uploaded).listeners.map(({ id }) => id);
}

async function runningText({ haproxy, views }: LoadBalancer): Promise<RunningText | undefined> {
  const { running: text } = views;
  const rows = text && (await haproxy.stats());
  return text === undefined || rows === undefined ? undefined : { text, rows };
}

function md5(text: string): string {
  return createHash('md5').update(text).digest('hex');
}
