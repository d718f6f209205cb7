// A listener in HAProxy's terms, split by how it can change: its structure needs a reload; servers and allowed clients
// change by commands. The only source of both the lines of the file and the commands, so that they never differ. Pure.
// Why: docs/design/decisions/0062-affinity-by-periods.md

import { hash } from 'node:crypto';
import { memoByIdentity } from '../../base/memo.ts';
import type { Listener, Member, Pool } from '../../model/load-balancer.ts';
import { dispatcher, fallbackBackend } from '../../model/names.ts';
import { memberTlsStructure, memberTlsWords, tlsStructure } from './tls-config.ts';

/** HAProxy accepts 64 words and 2,048 characters in a line; a longer list of CIDRs takes several lines. */
const CIDRS_PER_LINE = 40;

/** For an empty list: addresses that no client can have. */
const NO_CLIENT = { v4: '255.255.255.255/32', v6: '::/128' } as const;

/** A backend of a listener: its own, or the fallback for the time when checks find all members down. */
export interface Backend {
  readonly name: string;
  /** Without a monitor in the fallback. */
  readonly pool: Pool;
  readonly listener: Listener;
}

/**
 * A listener that must be served while all its members are down has a second backend with the same servers, names and ids,
 * but without checks. HAProxy uses it while the first backend has no server up, also without the agent.
 */
export function backendsOf(listener: Listener): readonly Backend[] {
  const { name, pool } = listener;
  if (isRouted(listener)) return [];
  // A backend that gets no traffic has no stick table.
  if (isOnlyChecked(listener)) return [{ name, pool: { ...pool, persistence: 0 }, listener }];
  const own = { name, pool, listener };
  if (!hasFallback(listener)) return [own];
  // The stick table belongs to the first backend.
  return [
    own,
    { name: fallbackBackend(name), pool: { ...pool, monitor: undefined, persistence: 0 }, listener },
  ];
}

export function hasFallback({ pool: { monitor, whenAllDown }, reachedBy }: Listener): boolean {
  return monitor !== undefined && whenAllDown === 'serve' && reachedBy === 'clients';
}

/** The frontends of a listener, first the one that clients connect to. */
export function frontendsOf({ name, dispatch }: Listener): readonly [string, ...string[]] {
  return dispatch === undefined ? [name] : [dispatcher(name), name];
}

/** True for listeners of HAProxy's engine with an address. */
export function isForHaproxy({ engine, addresses }: Listener): boolean {
  return engine === 'haproxy' && addresses.length > 0;
}

/** True for listeners of the kernel whose members HAProxy checks, in a backend to which no frontend sends. */
export function isOnlyChecked({ engine, addresses, pool: { monitor } }: Listener): boolean {
  return engine === 'kernel' && addresses.length > 0 && monitor !== undefined && monitor.type !== 'udp';
}

/** True for a frontend without a backend of its own: routes choose among pools. */
export function isRouted(listener: Listener): boolean {
  return isForHaproxy(listener) && listener.routing !== undefined;
}

/** True for listeners that report each request that fails to the agent, which lets members rest: those of a pool, or of routes. */
export function reportsErrors(listener: Listener): boolean {
  return isForHaproxy(listener) && (listener.routing !== undefined || listener.pool.ejection !== undefined);
}

/** True for a backend without a frontend, to which routes send. */
export function isRoutePool({ engine, reachedBy }: Listener): boolean {
  return engine === 'haproxy' && reachedBy === 'routes';
}

/** True for listeners with a section in the file. */
export function hasSection(listener: Listener): boolean {
  return isForHaproxy(listener) || isOnlyChecked(listener) || isRoutePool(listener);
}

/**
 * True if new connections must be refused, as by kube-proxy, because no endpoint takes any; in mode http clients get an answer.
 * Members that only fail their checks are no reason.
 */
export function refusesConnections({ mode, routing, pool: { members } }: Listener): boolean {
  return mode === 'tcp' && routing === undefined && !members.some(({ state }) => state === 'ready');
}

/** `address port` of each bind of a listener. */
export function bindsOf(listener: Listener): readonly string[] {
  return isForHaproxy(listener) ? listener.addresses.map((address) => `${address} ${listener.port}`) : [];
}

/**
 * The allowed clients, one list for each line of the file; at least one line, and no empty line, unless the listener has no
 * frontend. The number of lines is no part of the structure, because at runtime an ACL takes any number of CIDRs.
 */
export function allowedLines(listener: Listener): readonly (readonly string[])[] {
  if (!isForHaproxy(listener)) return [];
  return linesOf(listener.allowedCidrs, [NO_CLIENT[listener.family]]);
}

/** The clients that a pool of routes may serve; they belong to its structure. */
export function clientLines({ pool: { clients } }: Listener): readonly (readonly string[])[] {
  return clients === undefined ? [] : linesOf(clients, Object.values(NO_CLIENT));
}

function linesOf(some: readonly string[], none: readonly string[]): readonly (readonly string[])[] {
  const cidrs = some.length > 0 ? some : none;
  const lines: string[][] = [];
  for (let at = 0; at < cidrs.length; at += CIDRS_PER_LINE) lines.push(cidrs.slice(at, at + CIDRS_PER_LINE));
  return lines;
}

/** All that only a reload can change, as one text; equal texts need no reload. */
export const structureOf = memoByIdentity((listener: Listener): string => {
  const { name, port, family, addresses } = listener;
  if (isOnlyChecked(listener)) return JSON.stringify([name, ...checksOf(listener)]);
  return JSON.stringify([name, port, family, addresses, ...optionsOf(listener)]);
});

/** The structure without name, addresses and port, which have passed their allow-lists: HAProxy accepts both or neither of two equal shapes. */
export function shapeOf(listener: Listener): string {
  if (isOnlyChecked(listener)) return JSON.stringify(checksOf(listener));
  return JSON.stringify([listener.family, ...optionsOf(listener)]);
}

function checksOf({ pool: { monitor, timeouts } }: Listener): readonly unknown[] {
  return ['checks', monitor, timeouts.connect];
}

function optionsOf(listener: Listener): readonly unknown[] {
  const { pool } = listener;
  return [
    ...(isRoutePool(listener) ? ['pool'] : []),
    ...routingOf(listener),
    ...(listener.dispatch === undefined ? [] : ['dispatch']),
    listener.mode,
    listener.acceptProxy,
    tlsStructure(listener),
    // A change at runtime can crash HAProxy 2.6.12 (issue #2726), and 0 closes the frontend instead of opening it.
    listener.connectionLimit,
    listener.rateLimit,
    listener.clientTimeout,
    listener.log,
    ...(listener.trustedProxies === undefined ? [] : ['proxies', listener.trustedProxies]),
    ...(listener.requestIds === true ? ['ids'] : []),
    ...(listener.compression === undefined ? [] : [listener.compression]),
    ...(listener.errorPages === undefined ? [] : ['pages', listener.errorPages]),
    ...(listener.userLists === undefined ? [] : ['users', listener.userLists]),
    ...(listener.tokenKeys === undefined
      ? []
      : ['keys', listener.tokenKeys.map(({ name, fingerprint }) => [name, fingerprint])]),
    ...(listener.asksServers === undefined ? [] : ['asks']),
    ...(listener.replacesErrors === undefined ? [] : ['errors']),
    [
      algorithmOf(pool),
      pool.persistence,
      pool.monitor ?? null,
      memberTlsStructure(pool),
      pool.httpVersion,
      pool.cookie,
      ...(pool.cookie === '' ? [] : [cookieKeyOf(listener.name, pool)]),
      pool.retry ?? null,
      pool.proxyProtocol,
      pool.timeouts,
      pool.memberConnectionLimit,
    ],
    ...(pool.clients === undefined ? [] : ['clients', pool.clients]),
    pool.monitor === undefined ? '' : pool.whenAllDown,
    // How many errors, which ones and which share may change without a reload.
    ...(pool.ejection === undefined ? [] : ['errors']),
    ...(pool.slowStart === undefined ? [] : ['slow start', pool.slowStart]),
  ];
}

/** The rules are the same for all routes, which are rows of maps. */
function routingOf({ routing }: Listener): readonly unknown[] {
  if (routing === undefined) return [];
  return ['errors', routing.kind, routing.kind === 'http' && routing.detectMisdirected];
}

/** A key from the Service's secret, so that no client can make the cookie of a member; the same on both hosts. */
export function cookieKeyOf(backend: string, { cookieSecret = '' }: Pool): string {
  return hash('sha256', `${backend} ${cookieSecret}`).slice(0, 32);
}

/** With session affinity a worker that has not learned the member of a client chooses by a hash, as all others do. */
export function algorithmOf({ algorithm, persistence }: Pool): Pool['algorithm'] {
  return persistence > 0 ? 'source-hash' : algorithm;
}

/** The weight of nearly every member: the file has it once, in `default-server`, which makes a start shorter. */
export const USUAL_WEIGHT = 16;

/**
 * The keywords of a server after its address, the same in the file and in `add server` except for the weight: `usual` in the
 * file leaves it to `default-server`, which `add server` ignores. `certificates`: the folder of the authorities' files.
 */
export function serverKeywords(
  pool: Pool,
  member: Member,
  weight: number | 'usual',
  certificates: string,
): readonly string[] {
  const words = ['id', String(member.id)];
  if (weight !== 'usual') words.push('weight', String(weight));
  if (pool.memberConnectionLimit > 0) words.push('maxconn', String(pool.memberConnectionLimit));
  if (pool.proxyProtocol === 'v1') words.push('send-proxy');
  if (pool.proxyProtocol === 'v2') words.push('send-proxy-v2');
  if (pool.tls !== undefined) words.push(...memberTlsWords(certificates, pool.tls));
  if (pool.httpVersion === '2') words.push(...(pool.tls === undefined ? ['proto'] : ['alpn']), 'h2');
  if (pool.slowStart !== undefined) words.push('slowstart', `${pool.slowStart}ms`);
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
    if (monitor.port > 0) words.push('port', String(monitor.port));
    // HAProxy's default only for servers in the file whose checks have no port of their own.
    if (pool.proxyProtocol !== 'none' && [0, member.port].includes(monitor.port))
      words.push('check-send-proxy');
    // On the port of the members a check uses their TLS.
    const isInside = pool.tls !== undefined && [0, member.port].includes(monitor.port);
    const isGrpc = monitor.type === 'grpc' || monitor.type === 'grpcs';
    if (isInside || monitor.type === 'https' || monitor.type === 'tls' || monitor.type === 'grpcs') {
      words.push('check-ssl');
      // The word would hold for the members' TLS as well.
      if (pool.tls === undefined) words.push('verify', 'none');
      if (isGrpc) words.push('check-alpn', 'h2');
      const sni = monitor.sni || (pool.tls?.serverName ?? '');
      if (sni !== '') words.push('check-sni', sni);
    }
  }
  return words;
}
