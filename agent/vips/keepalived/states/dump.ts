// What keepalived tells of itself: the JSON that it writes on a signal, and the lines that it writes to its FIFO.
// Pure; all versions from 2.2.

import { isMapping, listOf, number, object, string } from '../../../base/validate.ts';
import type { VrrpStateName } from '../../vrrp.ts';

export interface InstanceDump {
  readonly name: string;
  readonly state: VrrpStateName;
  /** Seconds since the Unix epoch. */
  readonly lastTransition: number;
  readonly basePriority: number;
  readonly priority: number;
  /** Milliseconds. */
  readonly advertInterval: number;
  /** Every address that goes with it, anchors and VIPs. */
  readonly addresses: ReadonlySet<string>;
  /** Those of them that it has put on the interface. */
  readonly set: ReadonlySet<string>;
  readonly advertsReceived: number;
  readonly advertsSent: number;
  /** How often it has become master. */
  readonly becameMaster: number;
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
    stats: object({ advert_rcvd: number(), advert_sent: number(), become_master: number() }),
  }),
);

/** undefined where it is not whole (yet), or not what keepalived writes. */
export function parseDump(text: string): readonly InstanceDump[] | undefined {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return undefined;
  }
  // A list, or, from 2.3 on where its file says so, a mapping with that list.
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
    };
  });
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

export type Notification =
  | {
      readonly kind: 'state';
      readonly instance: string;
      readonly state: VrrpStateName;
      readonly priority: number;
    }
  /** A master has heard another one whose priority is lower. */
  | { readonly kind: 'rival'; readonly instance: string };

const LINE = /^INSTANCE "([^"]+)" ([A-Z_]+)(?: (\d+))?$/;
const WORDS: Readonly<Record<string, VrrpStateName>> = {
  MASTER: 'master',
  BACKUP: 'backup',
  FAULT: 'fault',
  STOP: 'unknown',
  DELETED: 'unknown',
};

/** undefined for a line that says nothing about an instance's state. */
export function parseNotification(line: string): Notification | undefined {
  const [, name, word = '', priority] = LINE.exec(line) ?? [];
  if (name === undefined) return undefined;
  if (word === 'MASTER_RX_LOWER_PRI') return { kind: 'rival', instance: name };
  const state = WORDS[word];
  return state && { kind: 'state', instance: name, state, priority: Number(priority ?? 0) };
}
