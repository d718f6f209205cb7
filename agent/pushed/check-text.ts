// Lets HAProxy check a pushed text together with the second file, before anything is stored.

import { HeadgateError } from '../base/errors.ts';
import { replaceInMemory } from '../host/atomic-file.ts';
import { runCommand } from '../host/run-command.ts';
import type { BootOptions } from './booting.ts';
import { FILE_MODE } from './files.ts';
import { secondFile } from './second-file.ts';
import type { PushedText } from './text/pushed-text.ts';
import { reachBeyond } from './text/reach.ts';

const TIMEOUT_MS = 60_000;
const MARK = 'headgate-check';

/**
 * `base`: the folder of the controller's files. Errors: HAPROXY_REJECTED with HAProxy's words, or those of reachBeyond();
 * FILE_WRITE, COMMAND_FAILED.
 */
export async function checkText(
  text: PushedText,
  base: string,
  { executable, group, files }: BootOptions,
): Promise<void> {
  const fault = reachBeyond(text, base);
  if (fault !== '')
    throw new HeadgateError('HAPROXY_REJECTED', `Not a text of Octavia: ${fault}`, { retry: 'never' });
  replaceInMemory(files.checked, text.text, FILE_MODE);
  replaceInMemory(files.checkedSecond, secondFile(text, MARK, group, files), FILE_MODE);
  const words = ['-c', '-f', files.checked, '-f', files.checkedSecond, ...files.peer];
  const { exitCode, stdout, stderr } = await runCommand(executable, words, { timeout: TIMEOUT_MS });
  if (exitCode === 0) return;
  const said = `${stderr}${stdout}`.replaceAll(files.checked, files.config).trim();
  throw new HeadgateError('HAPROXY_REJECTED', said, { retry: 'never' });
}
