// What one listener means to HAProxy, split by how it can be changed: its structure needs a reload, the rest
// (servers, allowed clients) is told to the running worker.
// The one source of both the file's lines and the socket's commands, so that the two can never differ. Pure.

import type { Listener, Member, Pool } from '../../model/load-balancer.ts';
import { fallbackBackend } from '../../model/names.ts';

/** HAProxy takes at most 64 words and 2,048 characters in a line; a longer list of CIDRs goes over several. */
const CIDRS_PER_LINE = 40;

/** Stands for the empty list: addresses that no client can have. */
const NOBODY = { v4: '255.255.255.255/32', v6: '::/128' } as const;

/** The servers of one section: those of a listener, or the same once more for when checks find all of them down. */
export interface Backend {
  readonly name: string;
  /** Without its monitor in the second one. */
  readonly pool: Pool;
  readonly listener: Listener;
}

/**
 * A listener whose monitor may not take all members away has a second backend with the same servers under the same
 * names and ids, but without checks, which gets the connections while the first has no server up. HAProxy goes over
 * to it by itself, within the same moment, also while no agent runs.
 */
export function backendsOf(listener: Listener): readonly Backend[] {
  const { name, pool } = listener;
  const own = { name, pool, listener };
  if (!hasFallback(pool)) return [own];
  // The table of clients that are tied to a member is the first one's.
  return [
    own,
    { name: fallbackBackend(name), pool: { ...pool, monitor: undefined, persistence: 0 }, listener },
  ];
}

export function hasFallback({ monitor, whenAllDown }: Pool): boolean {
  return monitor !== undefined && whenAllDown === 'serve';
}

/** Listeners that HAProxy serves: those of its engine with an address of their own. */
export function isForHaproxy({ engine, addresses }: Listener): boolean {
  return engine === 'haproxy' && addresses.length > 0;
}

/** `address port` of everything that HAProxy listens on for it. Joined, because V8 keeps a template in parts and as a whole. */
export function bindsOf(listener: Listener): readonly string[] {
  return isForHaproxy(listener)
    ? listener.addresses.map((address) => [address, listener.port].join(' '))
    : [];
}

/**
 * The allowed clients, one list per line of the file; never without a line, never with an empty one. How many lines a
 * worker booted with is no part of the structure: at runtime any of them takes any number of CIDRs.
 */
export function allowedLines(listener: Listener): readonly (readonly string[])[] {
  const cidrs = listener.allowedCidrs.length > 0 ? listener.allowedCidrs : [NOBODY[listener.family]];
  const lines: string[][] = [];
  for (let at = 0; at < cidrs.length; at += CIDRS_PER_LINE) lines.push(cidrs.slice(at, at + CIDRS_PER_LINE));
  return lines;
}

const structures = new WeakMap<Listener, string>();

/** Everything of a listener that only a reload can change, as one text; equal texts need no reload. */
export function structureOf(listener: Listener): string {
  let structure = structures.get(listener);
  if (structure === undefined) {
    structure = JSON.stringify(staticPartsOf(listener));
    structures.set(listener, structure);
  }
  return structure;
}

/**
 * What is left of the structure without the listener's own name and places: whether HAProxy takes its section depends on
 * nothing else, as names, addresses and ports have passed their allow-lists.
 */
export function shapeOf(listener: Listener): string {
  return JSON.stringify([listener.family, ...optionsOf(listener)]);
}

function staticPartsOf(listener: Listener): readonly unknown[] {
  const { name, port, family, addresses } = listener;
  return [name, port, family, addresses, ...optionsOf(listener)];
}

function optionsOf(listener: Listener): readonly unknown[] {
  const { pool } = listener;
  return [
    listener.mode,
    listener.acceptProxy,
    // At runtime it could kill HAProxy 2.6.12 (issue #2726), and 0 would close the frontend instead of opening it.
    listener.connectionLimit,
    listener.rateLimit,
    listener.clientTimeout,
    [
      pool.algorithm,
      pool.persistence,
      pool.monitor ?? null,
      pool.proxyProtocol,
      pool.timeouts,
      pool.memberConnectionLimit,
    ],
    pool.monitor === undefined ? '' : pool.whenAllDown,
  ];
}

/**
 * Of nearly every member. The file says it once, for all servers, because each keyword of a server is looked for among
 * all that HAProxy knows: a start with 10,000 servers is 5 ms shorter without that one.
 */
export const USUAL_WEIGHT = 16;

/**
 * The words of a server after its address, the same in the file and in `add server`, but for the weight: that of one that
 * drains, and in the file the usual one, which `default-server` says there and which `add server` does not take from it.
 */
export function serverKeywords(pool: Pool, member: Member, weight: number | 'usual'): readonly string[] {
  const words = ['id', String(member.id)];
  if (weight !== 'usual') words.push('weight', String(weight));
  if (pool.memberConnectionLimit > 0) words.push('maxconn', String(pool.memberConnectionLimit));
  if (pool.proxyProtocol === 'v1') words.push('send-proxy');
  if (pool.proxyProtocol === 'v2') words.push('send-proxy-v2');
  const { monitor } = pool;
  if (monitor !== undefined) {
    words.push(
      'check',
      'inter',
      `${monitor.interval}ms`,
      'rise',
      String(monitor.rise),
      'fall',
      String(monitor.fall),
    );
    // HAProxy's own rule for static servers, said aloud for those added at runtime.
    if (monitor.port > 0) words.push('port', String(monitor.port));
    else if (pool.proxyProtocol !== 'none') words.push('check-send-proxy');
    if (monitor.type === 'https' || monitor.type === 'tls' || monitor.type === 'grpcs') {
      words.push('check-ssl', 'verify', 'none');
      if (monitor.type === 'grpcs') words.push('check-alpn', 'h2');
      if (monitor.sni !== '') words.push('check-sni', monitor.sni);
    }
  }
  return words;
}

/** `address:port`, an IPv6 address in brackets. */
export function socketAddress(address: string, port: number): string {
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
}
