// Boots a text: writes its files, starts HAProxy or orders a reload, and proves by the mark that the new worker serves them.

import { sleep } from '../base/clock.ts';
import { HeadgateError } from '../base/errors.ts';
import { connectOwnWorker, type Phase } from '../haproxy/instance/connect.ts';
import { orderReload, proveRestart } from '../haproxy/instance/order-reload.ts';
import { startHaproxy } from '../haproxy/instance/process.ts';
import type { Runtime } from '../haproxy/socket/runtime.ts';
import { replaceInMemory } from '../host/atomic-file.ts';
import { logSince, logSize } from '../host/daemon-output.ts';
import type { Log } from '../host/log.ts';
import { type BootRecord, writeRecord } from './boot-record.ts';
import { FILE_MODE, type PushedFiles } from './files.ts';
import { secondFile } from './second-file.ts';
import type { PushedText } from './text/pushed-text.ts';

export interface BootOptions {
  readonly executable: string;
  /** A name in /run/netns; '' for the agent's own. */
  readonly netns: string;
  readonly group: string;
  readonly files: PushedFiles;
  readonly log: Log;
}

/** A text with what its worker must prove. */
export interface Boot {
  readonly text: PushedText;
  readonly record: BootRecord;
}

const START_TIMEOUT_MS = 30_000;
const NEW_WORKER_TIMEOUT_MS = 10_000;
/** The new worker cannot answer earlier than this after the order to reload. */
const FIRST_LOOK_MS = 20;
const POLL_INTERVAL_MS = 10;

/** The record first: a crash from here on leaves no worker whose mark is in the record. Errors: FILE_WRITE. */
export function writeBoot({ text, record }: Boot, { files, group }: BootOptions): void {
  writeRecord(files.record, record);
  replaceInMemory(files.second, secondFile(text, record.mark, group, files), FILE_MODE);
  writeText(text, files);
}

/** Errors: FILE_WRITE. */
export function writeText({ text }: PushedText, { config }: PushedFiles): void {
  replaceInMemory(config, text, FILE_MODE);
}

/** Errors: HAPROXY_MISSING, HAPROXY_START with HAProxy's messages. */
export function start({ record }: Boot, options: BootOptions): Promise<Runtime> {
  const { executable, netns, files } = options;
  const find = (): Promise<Runtime | undefined> => workerOf(record.mark, options, 'starting');
  return startHaproxy(executable, files, find, START_TIMEOUT_MS, netns);
}

/**
 * Errors: HAPROXY_RELOAD with HAProxy's messages if it refuses the files or no worker serves them in time; then the old
 * worker continues.
 */
export async function reload({ record }: Boot, options: BootOptions): Promise<Runtime> {
  const { files, log } = options;
  await proveRestart(files);
  const from = await logSize(files.log);
  const end = { isOver: false };
  let taken: Runtime | undefined;
  const early = takeEarly(record.mark, options, end).then((runtime) => {
    taken = runtime;
    return runtime;
  });
  early.catch(() => undefined);
  let isRefused = false;
  let said = '';
  try {
    const result = await orderReload(files, { isServed: () => taken !== undefined, log });
    isRefused = !result.ok;
    said = result.log;
  } finally {
    end.isOver = true;
    await early.catch(() => undefined);
  }
  if (taken !== undefined) return taken;
  if (isRefused) {
    const output = (said || (await logSince(files.log, from))).trim();
    throw new HeadgateError('HAPROXY_RELOAD', `HAProxy refused the reload: ${output.slice(-2_000)}`);
  }
  for (const until = performance.now() + NEW_WORKER_TIMEOUT_MS; performance.now() < until; ) {
    const runtime = await workerOf(record.mark, options, 'running');
    if (runtime !== undefined) return runtime;
    await sleep(POLL_INTERVAL_MS);
  }
  throw new HeadgateError('HAPROXY_RELOAD', 'After a reload no worker of HAProxy serves the new text');
}

/** The new worker as soon as it answers: the master of 2.6 reports it later. undefined if the reload ended first. */
async function takeEarly(
  mark: string,
  options: BootOptions,
  end: { readonly isOver: boolean },
): Promise<Runtime | undefined> {
  await sleep(FIRST_LOOK_MS);
  while (!end.isOver) {
    const runtime = await workerOf(mark, options, 'starting');
    if (runtime !== undefined) return runtime;
    await sleep(POLL_INTERVAL_MS);
  }
  return undefined;
}

/** A connection to the worker with this mark; undefined if another one or none answers. */
async function workerOf(
  mark: string,
  { files, log }: BootOptions,
  phase: Phase,
): Promise<Runtime | undefined> {
  const runtime = await connectOwnWorker(files, phase, log).catch(() => undefined);
  if (runtime === undefined) return undefined;
  const { description, pid, stopping } = runtime.worker;
  if (description === mark && pid > 0 && !stopping) return runtime;
  runtime.close();
  return undefined;
}
