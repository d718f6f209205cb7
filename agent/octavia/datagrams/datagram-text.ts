// Reads the text of keepalived that Octavia's controller pushes for one listener of UDP or SCTP: addresses, members and checks,
// with the ids, which stand in comments only. A line that is not known is refused. Pure.
// Source: octavia/common/jinja/lvs/templates.

import { HeadgateError } from '../../base/errors.ts';
import { parseAddress } from '../../base/ip.ts';
import { quote } from '../../base/quote.ts';
import type { Family } from '../../model/load-balancer.ts';
import { UUID } from './uuid.ts';

export interface DatagramText {
  readonly listener: string;
  readonly isEnabled: boolean;
  /** One for each family of VIPs, if there is a pool. */
  readonly servers: readonly VirtualServer[];
}

export interface VirtualServer {
  readonly family: Family;
  readonly vips: readonly Place[];
  readonly protocol: 'UDP' | 'SCTP';
  readonly algorithm: 'wrr' | 'lc' | 'sh';
  /** Seconds; `prefix`: clients with the same bits in front share a member; undefined: each address has its own. */
  readonly persistence: { readonly seconds: number; readonly prefix: number | undefined } | undefined;
  /** Seconds between two checks of a member. */
  readonly delay: number;
  /** How many checks in a row must fail until a member is down. */
  readonly fall: number;
  readonly pool: { readonly id: string; readonly isEnabled: boolean };
  readonly members: readonly DatagramMember[];
  /** The ids of members that the user has disabled, of which the text has nothing else. */
  readonly disabled: readonly string[];
}

export interface Place {
  readonly address: string;
  readonly port: number;
}

export interface DatagramMember extends Place {
  readonly id: string;
  readonly weight: number;
  /** Concurrent flows; 0: no limit. */
  readonly limit: number;
  readonly check: DatagramCheck | undefined;
}

export interface DatagramCheck extends Place {
  readonly kind: 'udp' | 'sctp' | 'tcp' | 'http';
  /** Seconds. */
  readonly timeout: number;
  /** '' except for http. */
  readonly path: string;
  /** The status codes of HTTP that are good; empty except for http. */
  readonly codes: readonly number[];
}

/** What a line means; it may read further lines. False: it is refused. */
type Keyword = (words: readonly string[]) => boolean;
type Keywords = Readonly<Record<string, Keyword>>;

const MAX_WEIGHT = 256;
const MAX_SECONDS = 1_000_000;
const GROUPS: Readonly<Record<string, Family>> = { 'ipv4-group': 'v4', 'ipv6-group': 'v6' };

/** Errors: OCTAVIA_INVALID with the line. */
export function readDatagramText(text: string): DatagramText {
  return new Reader(text).read();
}

class Reader {
  readonly #lines: readonly string[];
  #at = 0;

  constructor(text: string) {
    this.#lines = text.split('\n');
  }

  read(): DatagramText {
    let listener = '';
    let isEnabled = true;
    const groups = new Map<string, readonly Place[]>();
    const servers: VirtualServer[] = [];
    const comment: Keyword = (words) => {
      const [, state, id = ''] = commentOf(words, 'Listener') ?? [];
      if (state === undefined) return commentOf(words, 'Loadbalancer') !== undefined;
      listener = id;
      isEnabled = state === 'enabled';
      return true;
    };
    this.#block(
      {
        '#': comment,
        net_namespace: ([name, ...rest]) => /^[\w.-]+$/.test(name ?? '') && rest.length === 0,
        virtual_server_group: (words) => {
          const [group = '', open, ...rest] = words;
          const family = GROUPS[group];
          if (family === undefined || open !== '{' || rest.length > 0 || groups.has(group)) return false;
          groups.set(group, this.#vips(family));
          return true;
        },
        virtual_server: ([kind, group = '', open, ...rest]) => {
          const [family, vips] = [GROUPS[group], groups.get(group)];
          if (kind !== 'group' || open !== '{' || rest.length > 0) return false;
          if (family === undefined || vips === undefined || servers.some((each) => each.family === family))
            return false;
          servers.push(this.#server(family, vips));
          return true;
        },
      },
      true,
    );
    if (listener === '') throw invalid('The text does not name its listener');
    const [first] = servers;
    if (
      servers.some(
        ({ protocol, vips }) => protocol !== first?.protocol || vips[0]?.port !== first.vips[0]?.port,
      )
    )
      throw invalid('The text has several ports or protocols');
    return { listener, isEnabled, servers };
  }

  #vips(family: Family): readonly Place[] {
    const vips: Place[] = [];
    this.#block({}, false, (words) => {
      const place = placeOf(words, family);
      if (place === undefined || (vips[0] !== undefined && vips[0].port !== place.port)) return false;
      vips.push(place);
      return true;
    });
    if (vips.length === 0) throw this.#refused();
    return vips;
  }

  #server(family: Family, vips: readonly Place[]): VirtualServer {
    const found: { -readonly [Key in keyof VirtualServer]?: VirtualServer[Key] } = {};
    const members: DatagramMember[] = [];
    const disabled: string[] = [];
    let seconds: number | undefined;
    let prefix: number | undefined;
    let next = '';
    const comment: Keyword = (words) => {
      const [kind, state, id = ''] = commentOf(words, 'Pool', 'HealthMonitor', 'Member') ?? [];
      if (kind === 'Pool') found.pool = { id, isEnabled: state === 'enabled' };
      else if (kind === 'Member' && state === 'enabled') next = id;
      else if (kind === 'Member') disabled.push(id);
      return kind !== undefined;
    };
    this.#block({
      '#': comment,
      lb_algo: one((word) => {
        if (word !== 'wrr' && word !== 'lc' && word !== 'sh') return false;
        found.algorithm = word;
        return true;
      }),
      lb_kind: one((word) => word === 'NAT'),
      protocol: one((word) => {
        if (word !== 'UDP' && word !== 'SCTP') return false;
        found.protocol = word;
        return true;
      }),
      persistence_timeout: numeric(1, MAX_SECONDS, (value) => {
        seconds = value;
      }),
      persistence_granularity: one((word) => {
        const value = prefixOf(word, family);
        prefix = value;
        return value !== undefined;
      }),
      delay_loop: numeric(1, MAX_SECONDS, (value) => {
        found.delay = value;
      }),
      delay_before_retry: numeric(0, MAX_SECONDS, () => undefined),
      retry: numeric(0, MAX_SECONDS, (value) => {
        found.fall = Math.max(1, value);
      }),
      real_server: (words) => {
        const place = placeOf(words.slice(0, -1), family);
        if (place === undefined || words.at(-1) !== '{' || next === '') return false;
        if (members.some(({ address, port }) => address === place.address && port === place.port))
          return false;
        members.push(this.#member(next, place));
        next = '';
        return true;
      },
    });
    const { algorithm, protocol, pool, delay = 0, fall = 1 } = found;
    if (algorithm === undefined || protocol === undefined || pool === undefined)
      throw invalid('A virtual_server lacks its lb_algo, its protocol or its pool');
    const isWhole = prefix === undefined || prefix === (family === 'v4' ? 32 : 128);
    const persistence = seconds === undefined ? undefined : { seconds, prefix: isWhole ? undefined : prefix };
    return { family, vips, protocol, algorithm, persistence, delay, fall, pool, members, disabled };
  }

  #member(id: string, place: Place): DatagramMember {
    let weight = 1;
    let limit = 0;
    let check: DatagramCheck | undefined;
    const checker =
      (read: () => DatagramCheck): Keyword =>
      ([open, ...rest]) => {
        if (open !== '{' || rest.length > 0 || check !== undefined) return false;
        check = read();
        return true;
      };
    this.#block({
      weight: numeric(0, MAX_WEIGHT, (value) => {
        weight = value;
      }),
      uthreshold: numeric(0, Number.MAX_SAFE_INTEGER, (value) => {
        limit = value;
      }),
      MISC_CHECK: checker(() => this.#program()),
      TCP_CHECK: checker(() => this.#connection('tcp', place)),
      HTTP_GET: checker(() => this.#connection('http', place)),
    });
    return { ...place, id, weight, limit, check };
  }

  /** Octavia's programs that keepalived runs: for UDP a script of its own, for SCTP one of the image. */
  #program(): DatagramCheck {
    let path = '';
    let timeout = 0;
    const rows = {
      misc_path: (words: readonly string[]) => {
        path = words.join(' ');
        return true;
      },
      misc_timeout: numeric(1, MAX_SECONDS, (value) => {
        timeout = value;
      }),
    };
    this.#block(rows);
    const [, udp, udpPort] = /^"\/[\w./-]*\/udp_check\.sh (\S+) (\d+)"$/.exec(path) ?? [];
    const [, seconds, sctp, sctpPort] =
      /^"amphora-health-checker sctp -t (\d+) (\S+) (\d+)"$/.exec(path) ?? [];
    const place = placeOf([udp ?? sctp ?? '', udpPort ?? sctpPort ?? '']);
    if (place === undefined || timeout === 0) throw this.#refused();
    const kind = udp === undefined ? 'sctp' : 'udp';
    return { ...place, kind, timeout: Number(seconds ?? timeout), path: '', codes: [] };
  }

  #connection(kind: 'tcp' | 'http', member: Place): DatagramCheck {
    let { address, port } = member;
    let timeout = 0;
    let path = '';
    const codes: number[] = [];
    const url: Keyword = ([open, ...rest]) => {
      if (kind !== 'http' || open !== '{' || rest.length > 0) return false;
      this.#block({
        path: one((word) => {
          if (!/^\/[\x21-\x7e]*$/.test(word) || (path !== '' && path !== word)) return false;
          path = word;
          return true;
        }),
        status_code: numeric(100, 599, (value) => void codes.push(value)),
      });
      return true;
    };
    this.#block({
      url,
      connect_ip: one((word) => {
        address = parseAddress(word)?.address ?? '';
        return address !== '';
      }),
      connect_port: numeric(1, 65_535, (value) => {
        port = value;
      }),
      connect_timeout: numeric(1, MAX_SECONDS, (value) => {
        timeout = value;
      }),
    });
    if (timeout === 0 || (kind === 'http' && path === '')) throw this.#refused();
    return { address, port, kind, timeout, path, codes };
  }

  /** Reads the lines up to the end of a block, or of the text. `other` gets lines without a keyword. */
  #block(keywords: Keywords, isWhole = false, other: Keyword = () => false): void {
    while (this.#at < this.#lines.length) {
      const words = (this.#lines[this.#at++] ?? '').split(/\s+/).filter((word) => word !== '');
      const [first = '', ...rest] = words;
      if (first === '') continue;
      if (first === '}' && rest.length === 0 && !isWhole) return;
      const known = Object.hasOwn(keywords, first) ? keywords[first]?.(rest) : other(words);
      if (known !== true) throw this.#refused();
    }
    if (!isWhole) throw invalid('The text ends within a block');
  }

  /** The line that was read last, or a block that ends with it. */
  #refused(): HeadgateError {
    return invalid(`Cannot read line ${this.#at}: ${quote(this.#lines[this.#at - 1]?.trim() ?? '')}`);
  }
}

/** `Configuration for Pool ID` is enabled, `Pool ID is disabled` is not; undefined for another comment. */
function commentOf(
  words: readonly string[],
  ...kinds: readonly string[]
): readonly [kind: string, state: 'enabled' | 'disabled', id: string] | undefined {
  const [, on, onId] = /^Configuration for (\w+) (\S+)$/.exec(words.join(' ')) ?? [];
  const [, off, offId] = /^(\w+) (\S+) is disabled$/.exec(words.join(' ')) ?? [];
  const [kind, id] = [on ?? off ?? '', onId ?? offId ?? ''];
  if (!kinds.includes(kind) || !UUID.test(id)) return undefined;
  return [kind, on === undefined ? 'disabled' : 'enabled', id];
}

function one(read: (word: string) => boolean): Keyword {
  return ([word, ...rest]) => word !== undefined && rest.length === 0 && read(word);
}

function numeric(least: number, most: number, read: (value: number) => void): Keyword {
  return one((word) => {
    const value = Number(word);
    if (!/^\d{1,16}$/.test(word) || value < least || value > most) return false;
    read(value);
    return true;
  });
}

/** An address and a port, and nothing else. */
function placeOf(words: readonly string[], family?: Family): Place | undefined {
  const [text = '', digits = '', ...rest] = words;
  const parsed = parseAddress(text);
  const port = /^\d{1,5}$/.test(digits) ? Number(digits) : 0;
  if (parsed === undefined || rest.length > 0 || port < 1 || port > 65_535) return undefined;
  if (family !== undefined && parsed.family !== family) return undefined;
  return { address: parsed.address, port };
}

/** From a mask of IPv4, or the length of a prefix. Octavia writes the mask of IPv4 for IPv6, too: it means whole addresses. */
function prefixOf(word: string, family: Family): number | undefined {
  const most = family === 'v4' ? 32 : 128;
  if (/^\d{1,3}$/.test(word)) return Number(word) >= 1 && Number(word) <= most ? Number(word) : undefined;
  const parsed = parseAddress(word);
  if (parsed?.family !== 'v4') return undefined;
  if (family === 'v6') return most;
  const bits = word
    .split('.')
    .map((part) => Number(part).toString(2).padStart(8, '0'))
    .join('');
  return /^1+0*$/.test(bits) ? bits.lastIndexOf('1') + 1 : undefined;
}

function invalid(message: string): HeadgateError {
  return new HeadgateError('OCTAVIA_INVALID', message, { retry: 'never' });
}
