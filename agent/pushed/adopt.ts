// Finds the worker that an agent before this one has left running, and whether it is known what it runs. Changes nothing.

import { messageOf } from '../base/errors.ts';
import { connectOwnWorker } from '../haproxy/instance/connect.ts';
import type { Runtime } from '../haproxy/socket/runtime.ts';
import { type BootRecord, readRecord } from './boot-record.ts';
import type { BootOptions } from './booting.ts';
import { md5 } from './file-digests.ts';
import { type Readback, readBack } from './readback.ts';
import type { PushedText } from './text/pushed-text.ts';

export interface FoundWorker {
  readonly runtime: Runtime;
  readonly record: BootRecord;
  /** Why it may run something else than the text; '' if it runs the text. */
  readonly doubt: string;
  /** Removed servers that it still lists. */
  readonly leaving: Readback['leaving'];
}

const UNKNOWN: BootRecord = { mark: '', text: '', since: 0, cause: '', files: new Map() };

/** `text`: that of the file from which HAProxy boots. undefined if no worker answers. Never rejects. */
export async function findRunning(
  text: PushedText,
  { files, log }: Pick<BootOptions, 'files' | 'log'>,
): Promise<FoundWorker | undefined> {
  const runtime = await connectOwnWorker(files, 'running', log).catch(() => undefined);
  if (runtime === undefined) return undefined;
  const { pid, description, stopping } = runtime.worker;
  if (stopping) {
    runtime.close();
    return undefined;
  }
  const record = readRecord(files.record);
  // Another program may have changed the file, or the agent has ended between text and commands.
  const isOurs = record?.mark === description && record.text === md5(text.text);
  const found: FoundWorker = isOurs
    ? { runtime, record, ...(await compared(runtime, text)) }
    : { runtime, record: UNKNOWN, doubt: 'what the worker has booted from is unknown', leaving: [] };
  log.info('Adopted the HAProxy of a pushed text', { worker: pid, doubt: found.doubt });
  return found;
}

async function compared(runtime: Runtime, text: PushedText): Promise<Pick<FoundWorker, 'doubt' | 'leaving'>> {
  try {
    const { difference, leaving } = readBack(await runtime.ask('show servers state'), text);
    const doubt = difference === '' ? '' : `the worker differs from the text: ${difference}`;
    return { doubt, leaving };
  } catch (error) {
    return { doubt: `the worker could not be read: ${messageOf(error)}`, leaving: [] };
  }
}
