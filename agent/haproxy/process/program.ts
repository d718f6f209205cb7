// The HAProxy program on this host: is it there, and can we work with it.

import { HeadgateError } from '../../base/errors.ts';
import { runCommand } from '../../host/run-command.ts';
import { capabilitiesOf, parseVersion, type Version } from '../socket/version.ts';

/** Errors: HAPROXY_MISSING where it cannot be run, HAPROXY_VERSION where it is too old. */
export async function haproxyVersion(executable: string): Promise<Version> {
  const result = await runCommand(executable, ['-v'], { timeout: 10_000 }).catch((cause) => {
    const message = `Cannot run "${executable}": install HAProxy 2.6 or newer, or set "haproxy" to its path`;
    throw new HeadgateError('HAPROXY_MISSING', message, { retry: 'later', cause });
  });
  const version = parseVersion(result.stdout);
  const { supported, reason } = capabilitiesOf(version);
  if (!supported) throw new HeadgateError('HAPROXY_VERSION', reason, { retry: 'never' });
  return version;
}
