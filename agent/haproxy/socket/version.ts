// Which HAProxy answers, and what differs between 2.6 and 3.4 that this project's commands have to know. Chosen by the
// version that answers, never by configuration. What else differs is in docs/design/haproxy-versions.md. Pure.

import { HeadgateError } from '../../base/errors.ts';
import { quote } from '../../base/quote.ts';

export interface Version {
  readonly major: number;
  readonly minor: number;
  readonly patch: number;
  /** As HAProxy writes it: `2.6.12-1+deb12u4`. */
  readonly text: string;
}

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
   * The release of its branch from which on `least-connections` is safe, '' where it is: before, a server added at
   * runtime that goes into maintenance and comes back is queued twice, and HAProxy can hang (issue #3360: since
   * 822ee90dc in 3.2.6 and 3.3.0, until 2a1599297 in 3.2.19, 3.3.10 and 3.4.0).
   */
  readonly leastConnectionsSafeFrom: string;
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
    leastConnectionsSafeFrom: leastConnectionsSafeFrom(version),
  };
}

function leastConnectionsSafeFrom({ major, minor, patch }: Version): string {
  if (major === 3 && minor === 2 && patch >= 6 && patch < 19) return '3.2.19';
  return major === 3 && minor === 3 && patch < 10 ? '3.3.10' : '';
}
