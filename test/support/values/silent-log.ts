// A log that discards all lines.

import { createLog, type Log } from '../../../agent/host/log.ts';

export function silentLog(): Log {
  return createLog({ level: 'error', destination: { write: () => undefined }, format: 'json' });
}
