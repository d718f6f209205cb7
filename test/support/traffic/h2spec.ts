// Runs h2spec, the public tests of HTTP/2 (RFC 9113 and 7541), with --strict against a server.

import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Place } from './traffic.ts';

const run = promisify(execFile);

export interface H2specResult {
  readonly cases: number;
  /** `generic/3.1: Sends a DATA frame`. */
  readonly failed: readonly string[];
}

export interface H2specOptions {
  readonly program: string;
  readonly place: Place;
  readonly isTls: boolean;
  /** For its report. */
  readonly folder: string;
}

/** Seconds in which a server must answer a case. */
const ANSWER_TIMEOUT_S = 5;

export async function h2spec({ program, place, isTls, folder }: H2specOptions): Promise<H2specResult> {
  const report = join(folder, 'h2spec.xml');
  const { address, port } = place;
  const args = ['--strict', '-h', address, '-p', String(port), '-o', String(ANSWER_TIMEOUT_S), '-j', report];
  // Its status is 1 if a case fails.
  await run(program, [...args, ...(isTls ? ['-t', '-k'] : [])]).catch(() => undefined);
  const xml = await readFile(report, 'utf8');
  const failed: string[] = [];
  let cases = 0;
  for (const [whole, section, title] of xml.matchAll(CASE)) {
    cases++;
    if (whole.includes('<failure') || whole.includes('<error')) failed.push(`${section}: ${title}`);
  }
  return { cases, failed };
}

const CASE = /<testcase package="([^"]*)" classname="([^"]*)"[^>]*>.*?<\/testcase>/gs;
