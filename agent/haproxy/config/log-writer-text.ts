// The configuration of the HAProxy that writes the connection log to a file. Pure, except that it reads the template at the
// start.

import { loadTemplate } from '../../base/template.ts';
import type { HaproxyPaths } from '../paths.ts';
import { MAX_LINE_BYTES } from './log-format.ts';

const template = loadTemplate('haproxy/log-writer');

/** `user`, `group`: those of HAProxy's workers, which send to the socket; '' for that of the agent. */
export function logWriterText(
  { logSocket, socketMode }: Pick<HaproxyPaths, 'logSocket' | 'socketMode'>,
  user: string,
  group: string,
): string {
  return template({ socket: logSocket, socketMode, maxLineBytes: MAX_LINE_BYTES, user, group });
}
