// Which HAProxy answers, and what it can do: everything that differs between 2.6 and 3.4 and that this project's
// commands have to know. Chosen by the version that answers, never by configuration. Pure.

import { HeadgateError } from '../errors.ts';
import { quote } from '../quote.ts';

export interface Version {
  readonly major: number;
  readonly minor: number;
  readonly patch: number;
  /** As HAProxy writes it: `2.6.12-1+deb12u4`. */
  readonly text: string;
}

/** `management.txt` and commit numbers are HAProxy's own; "measured" names the release it was seen on. */
export interface Capabilities {
  readonly supported: boolean;
  /** Why not, '' where supported. */
  readonly reason: string;
  /**
   * A server added at runtime never reuses a connection unless it says `pool-max-conn -1 pool-purge-delay 5s`, both:
   * before 3.0 (8a31783b6 "fix dynamic servers initial settings"; measured on 2.6.12 and 2.8.0).
   */
  readonly dynamicServerNeedsPoolKeywords: boolean;
  /**
   * `hash-key addr` of a server added at runtime counts only once its weight changes: 3.0 until 64c5d45a2 (3.4-dev5,
   * to be backported down to 3.0, so that later patch releases may not need it).
   */
  readonly hashKeyNeedsWeightPoke: boolean;
  /**
   * Until when a server in maintenance can be deleted: asked again and again, or, from 3.0 on, waited for with
   * `wait DELAY srv-removable BACKEND/SERVER` on a connection of its own (management.txt 3.0, "wait").
   */
  readonly deleteWaits: 'poll' | 'wait';
  /** `del server` fails while idle connections to the server are left: from 3.3 on (3.3-dev8). */
  readonly deleteNeedsIdleConnectionsGone: boolean;
  /**
   * Of an ACL entry added twice `del acl` removes one, where others remove both: from 3.3 on (e36b3b60b, 3.3-dev9;
   * measured on 3.4.7 against 3.2.26).
   */
  readonly deleteAclRemovesOne: boolean;
  /**
   * `set maxconn frontend` is safe. Where it is not, the thread that runs it locks itself out if the frontend has
   * reached its limit by then, and HAProxy's watchdog kills the worker and with it the master: issue #2726, fixed by
   * a889413f5 in 3.1.0, 3.0.6, 2.8.12 and 2.6.20; measured on Debian 12's 2.6.12, which does not have it.
   */
  readonly setsListenerLimit: boolean;
  /** `reload` on the master socket answers `Success=0|1` and the log once it is over: from 2.7 on. */
  readonly masterReloadReports: boolean;
  /** `init-state` on a server line and on `add server`: from 3.1 on. */
  readonly initState: boolean;
  /** `add backend`, `publish backend` and their like need no experimental mode: from 3.4 on. */
  readonly addsBackends: boolean;
}

// `haproxy -v` begins with "HAProxy version " (before 2.4 "HA-Proxy version "), `show info` has a line "Version: ".
const VERSION = /^(?:HA-?Proxy version |Version: )?((\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?[^\s]{0,100})/m;

/** Of the output of `haproxy -v`, of `show info`, or of the version alone. Errors: HAPROXY_VERSION, never retried. */
export function parseVersion(text: string): Version {
  const [, version, major, minor, patch] = VERSION.exec(text) ?? [];
  if (version === undefined) {
    throw new HeadgateError('HAPROXY_VERSION', `Cannot find a HAProxy version in ${quote(text)}`, {
      retry: 'never',
    });
  }
  return { major: Number(major), minor: Number(minor), patch: Number(patch ?? 0), text: version };
}

/** A version newer than all we know is taken for the newest we know. */
export function capabilitiesOf(version: Version): Capabilities {
  const from = (major: number, minor: number): boolean =>
    version.major > major || (version.major === major && version.minor >= minor);
  const supported = from(2, 6);
  return {
    supported,
    reason: supported ? '' : `HAProxy ${version.text} is too old: Headgate needs 2.6 or newer`,
    dynamicServerNeedsPoolKeywords: !from(3, 0),
    hashKeyNeedsWeightPoke: from(3, 0) && !from(3, 4),
    deleteWaits: from(3, 0) ? 'wait' : 'poll',
    deleteNeedsIdleConnectionsGone: from(3, 3),
    deleteAclRemovesOne: from(3, 3),
    setsListenerLimit:
      from(3, 1) || version.patch >= (firstSafePatch.get(`${version.major}.${version.minor}`) ?? Infinity),
    masterReloadReports: from(2, 7),
    initState: from(3, 1),
    addsBackends: from(3, 4),
  };
}

// The patch releases that brought a889413f5 to branches before 3.1.
const firstSafePatch: ReadonlyMap<string, number> = new Map([
  ['2.6', 20],
  ['2.8', 12],
  ['3.0', 6],
]);
