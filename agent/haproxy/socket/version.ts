// HAProxy's version, and the differences between 2.6 and 3.4 that matter to the agent's commands. Other differences are
// in docs/design/haproxy-versions.md.

import { HeadgateError } from '../../base/errors.ts';
import { quote } from '../../base/quote.ts';
import { runCommand } from '../../host/run-command.ts';

export interface Version {
  readonly major: number;
  readonly minor: number;
  readonly patch: number;
  /** As HAProxy writes it: `2.6.12-1+deb12u4`. */
  readonly text: string;
}

export interface Capabilities {
  readonly supported: boolean;
  /** Why it is not supported; '' if it is. */
  readonly reason: string;
  /**
   * A server added at runtime reuses connections only with `pool-max-conn -1 pool-purge-delay 5s`: before 3.0 (8a31783b6
   * "fix dynamic servers initial settings").
   */
  readonly dynamicServerNeedsPoolKeywords: boolean;
  /** `add server` takes `cookie NAME`: from 3.0 on. */
  readonly dynamicServerTakesCookie: boolean;
  /**
   * The first release of its branch in which `least-connections` is safe; '' if this release is safe. In others a server
   * added at runtime that returns from maintenance is queued twice, and HAProxy can hang (issue #3360: since 822ee90dc in
   * 3.2.6 and 3.3.0, until 2a1599297 in 3.2.19, 3.3.10 and 3.4.0).
   */
  readonly leastConnectionsSafeFrom: string;
}

// `haproxy -v` begins with "HAProxy version " (before 2.4 "HA-Proxy version "), `show info` has a line "Version: ".
const VERSION = /^(?:HA-?Proxy version |Version: )?((\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?[^\s]{0,100})/m;

/** In the output of `haproxy -v` or `show info`, or a version alone. Errors: HAPROXY_VERSION, never retried. */
export function parseVersion(text: string): Version {
  const [, version, major, minor, patch] = VERSION.exec(text) ?? [];
  if (version === undefined) {
    throw new HeadgateError('HAPROXY_VERSION', `Cannot find a HAProxy version in ${quote(text)}`, {
      retry: 'never',
    });
  }
  return { major: Number(major), minor: Number(minor), patch: Number(patch ?? 0), text: version };
}

/** The version of the program. Errors: HAPROXY_MISSING if it cannot be run; HAPROXY_VERSION if it is too old. */
export async function haproxyVersion(executable: string): Promise<Version> {
  const result = await runCommand(executable, ['-v'], { timeout: VERSION_TIMEOUT_MS }).catch((cause) => {
    const message = `Cannot run "${executable}": install HAProxy 2.6 or newer, or set "haproxy" to its path`;
    throw new HeadgateError('HAPROXY_MISSING', message, { retry: 'later', cause });
  });
  const version = parseVersion(result.stdout);
  const { supported, reason } = capabilitiesOf(version);
  if (!supported) throw new HeadgateError('HAPROXY_VERSION', reason, { retry: 'never' });
  return version;
}

const VERSION_TIMEOUT_MS = 10_000;

/** A newer version than the newest known one has its capabilities. */
export function capabilitiesOf(version: Version): Capabilities {
  const from = (major: number, minor: number): boolean =>
    version.major > major || (version.major === major && version.minor >= minor);
  const supported = from(2, 6);
  return {
    supported,
    reason: supported ? '' : `HAProxy ${version.text} is too old: Headgate needs 2.6 or newer`,
    dynamicServerNeedsPoolKeywords: !from(3, 0),
    dynamicServerTakesCookie: from(3, 0),
    leastConnectionsSafeFrom: leastConnectionsSafeFrom(version),
  };
}

function leastConnectionsSafeFrom({ major, minor, patch }: Version): string {
  if (major === 3 && minor === 2 && patch >= 6 && patch < 19) return '3.2.19';
  return major === 3 && minor === 3 && patch < 10 ? '3.3.10' : '';
}
