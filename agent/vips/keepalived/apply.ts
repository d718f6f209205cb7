// Gives keepalived a new file: checked before it stands, put in place at once and whole, read by a reload, and seen to
// be what keepalived then has. What keepalived refuses never comes into place.

import { unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { HeadgateError } from '../../base/errors.ts';
import { renameDurably, writeDurably } from '../../host/atomic-file.ts';
import { makeFolder } from '../../host/make-directory.ts';
import { differenceOf } from './config/difference.ts';
import type { KeepalivedPaths } from './paths.ts';
import { checkConfig } from './process/process.ts';
import type { InstanceDump } from './states/dump.ts';

/** Errors: KEEPALIVED_REJECTED, retry never; FILE_WRITE, COMMAND_FAILED. The file is then as it was. */
export async function replaceConfig(
  executable: string,
  netns: string,
  paths: KeepalivedPaths,
  text: string,
): Promise<void> {
  const candidate = `${paths.config}.candidate`;
  try {
    await makeFolder(dirname(paths.config), 0o700);
    await writeDurably(candidate, [text]);
    const said = await checkConfig(executable, netns, candidate);
    if (said !== '') {
      const message = `keepalived refuses its configuration: ${said.replaceAll(candidate, 'keepalived.conf')}`;
      throw new HeadgateError('KEEPALIVED_REJECTED', message, { retry: 'never' });
    }
    await renameDurably(candidate, paths.config);
  } catch (error) {
    await unlink(candidate).catch(() => undefined);
    if (error instanceof HeadgateError) throw error;
    throw new HeadgateError('FILE_WRITE', `Cannot write "${paths.config}"`, { retry: 'later', cause: error });
  }
}

/** Milliseconds until keepalived is seen to have a file; it takes 50 with thousands of addresses. */
const PATIENCE = 3_000;

/** Returns once keepalived tells that it has what the text says. Errors: KEEPALIVED_RELOAD where it does not. */
export async function awaitText(
  text: string,
  ask: () => Promise<readonly InstanceDump[] | undefined>,
): Promise<readonly InstanceDump[]> {
  let difference = '';
  for (const until = performance.now() + PATIENCE; performance.now() < until; ) {
    // Asked at once it would tell what it had before a reload.
    await delay(20);
    const dump = await ask();
    difference = dump === undefined ? 'it does not answer' : differenceOf(dump, text);
    if (dump !== undefined && difference === '') return dump;
  }
  throw new HeadgateError('KEEPALIVED_RELOAD', `keepalived does not have what its file says: ${difference}`);
}
