// A log that says nothing, for parts that want one.

import { createLog, type Log } from '../../../agent/host/log.ts';

export function silentLog(): Log {
  return createLog({ level: 'error', destination: { write: () => undefined }, format: 'json' });
}
