// Reads the state of keepalived: a signal, after which keepalived writes its state to a file as JSON. All versions from
// 2.2.

import { readFile, rm } from 'node:fs/promises';
import { sleep } from '../../../base/clock.ts';
import { parseJson } from '../../../base/parse-json.ts';
import { serial } from '../../../base/serial.ts';
import { isMapping, listOf, number, object, string, type Valid } from '../../../base/validate.ts';
import { runsWith } from '../../../host/daemon/find.ts';
import type { VrrpStateName } from '../../vrrp.ts';
import type { KeepalivedPaths } from '../paths.ts';
import { signalKeepalived } from './process.ts';

export interface InstanceDump {
  readonly name: string;
  readonly state: VrrpStateName;
  /** Seconds since the Unix epoch. */
  readonly lastTransition: number;
  readonly basePriority: number;
  readonly priority: number;
  /** Milliseconds. */
  readonly advertInterval: number;
  /** Anchors and VIPs. */
  readonly addresses: ReadonlySet<string>;
  /** The addresses that it has put on the interface. */
  readonly set: ReadonlySet<string>;
  readonly advertsReceived: number;
  readonly advertsSent: number;
  /** How often it has become master. */
  readonly becameMaster: number;
  /** Advertisements that it has refused by their signature; undefined if it cannot authenticate them. */
  readonly forgeries?: number | undefined;
}

/** An answer takes keepalived a few milliseconds. */
const ANSWER_TIMEOUT_MS = 1_000;
const POLL_INTERVAL_MS = 3;

export class DumpReader {
  readonly #paths: KeepalivedPaths;
  /** All dumps have the same file. */
  readonly #turns = serial();

  constructor(paths: KeepalivedPaths) {
    this.#paths = paths;
  }

  /** `pid` of the parent process. undefined if keepalived does not run or does not answer. Never rejects. */
  read(pid: number, dumpSignal: number): Promise<readonly InstanceDump[] | undefined> {
    return this.#turns.run(() => this.#read(pid, dumpSignal)).catch(() => undefined);
  }

  async #read(pid: number, dumpSignal: number): Promise<readonly InstanceDump[] | undefined> {
    if (!(await runsWith(pid, this.#paths.config))) return undefined;
    await rm(this.#paths.dump, { force: true });
    if (!signalKeepalived(pid, dumpSignal)) return undefined;
    const until = performance.now() + ANSWER_TIMEOUT_MS;
    for (; performance.now() < until; await sleep(POLL_INTERVAL_MS)) {
      const dump = parseDump(await readFile(this.#paths.dump, 'utf8').catch(() => ''));
      if (dump !== undefined) return dump;
    }
    return undefined;
  }
}

const dump = listOf(
  object({
    data: object({
      iname: string(),
      state: number(),
      last_transition: number(),
      base_priority: number(),
      effective_priority: number(),
      adver_int: number(),
      vips: listOf(string()).nullish(),
      evips: listOf(string()).nullish(),
    }),
    stats: object({
      advert_rcvd: number(),
      advert_sent: number(),
      become_master: number(),
      auth_ext_missing: number().nullish(),
      auth_ext_malformed: number().nullish(),
      auth_ext_unknown_key: number().nullish(),
      auth_ext_invalid_hmac: number().nullish(),
      auth_ext_stale: number().nullish(),
      auth_ext_replay: number().nullish(),
    }),
  }),
);

/** undefined if the text is not complete (yet), or not what keepalived writes. */
export function parseDump(text: string): readonly InstanceDump[] | undefined {
  const json = parseJson(text);
  // A list; from 2.3 on, if keepalived.conf sets it, a mapping that has the list.
  const parsed = dump.judge(isMapping(json) ? json.vrrp : json);
  if (!parsed.success) return undefined;
  return parsed.data.map(({ data, stats }) => {
    const words = [...(data.vips ?? []), ...(data.evips ?? [])].map((each) => each.split(' '));
    return {
      name: data.iname,
      state: STATES[data.state] ?? 'unknown',
      lastTransition: data.last_transition,
      basePriority: data.base_priority,
      priority: data.effective_priority,
      advertInterval: Math.round(data.adver_int * 1000),
      addresses: new Set(words.map(addressOf)),
      set: new Set(words.filter((each) => each.includes('set')).map(addressOf)),
      advertsReceived: stats.advert_rcvd,
      advertsSent: stats.advert_sent,
      becameMaster: stats.become_master,
      forgeries: forgeriesOf(stats),
    };
  });
}

function forgeriesOf(stats: Valid<typeof dump>[number]['stats']): number | undefined {
  if (stats.auth_ext_missing === undefined) return undefined;
  const { auth_ext_missing, auth_ext_malformed, auth_ext_unknown_key } = stats;
  const { auth_ext_invalid_hmac, auth_ext_stale, auth_ext_replay } = stats;
  return [
    ...[auth_ext_missing, auth_ext_malformed, auth_ext_unknown_key],
    ...[auth_ext_invalid_hmac, auth_ext_stale, auth_ext_replay],
  ].reduce<number>((sum, each) => sum + (each ?? 0), 0);
}

/** keepalived/include/vrrp.h: init, backup, master, fault. */
const STATES: Readonly<Record<number, VrrpStateName>> = {
  0: 'unknown',
  1: 'backup',
  2: 'master',
  3: 'fault',
};

function addressOf(words: readonly string[]): string {
  return words[0]?.split('/')[0] ?? '';
}
