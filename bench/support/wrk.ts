// Requests by wrk for a second, on 64 connections.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Requests a second. `script`: in Lua, which makes the requests. Errors: a connection or a request failed. */
export async function wrk(
  address: string,
  port: number,
  headers: readonly string[] = [],
  script = '',
): Promise<number> {
  const options = headers.flatMap((header) => ['-H', header]);
  if (script !== '') options.push('-s', script);
  const { stdout } = await run('wrk', ['-t1', '-c64', '-d1s', ...options, `http://${address}:${port}/`]);
  const faults = /Socket errors:.*|Non-2xx.*/.exec(stdout)?.[0] ?? '';
  // A read error of a connection that closes is not a fault of HAProxy.
  if (/connect [1-9]|timeout [1-9]|Non-2xx/.test(faults)) throw new Error(`wrk: ${faults}`);
  return Number(/Requests\/sec:\s+(\S+)/.exec(stdout)?.[1]);
}
