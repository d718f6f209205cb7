// What a backend, a frontend with routes, or a server has counted between two readings: what was tried, and what failed. Pure.

import type { Interval } from '../../dataplane/failure-window.ts';
import { type Column, positionOf } from './columns.ts';
import type { StatRow } from './stat-rows.ts';

/** The columns that are kept between two readings. */
const COLUMNS = [
  'stot',
  'econ',
  'eresp',
  'wretr',
  'wredis',
  'bin',
  'bout',
  'hrsp_1xx',
  'hrsp_2xx',
  'hrsp_3xx',
  'hrsp_4xx',
  'hrsp_5xx',
  'cli_abrt',
  'srv_abrt',
] as const satisfies readonly Column[];
const POSITIONS = COLUMNS.map(positionOf);
const OPEN = positionOf('scur');
const at = (column: (typeof COLUMNS)[number]): number => COLUMNS.indexOf(column);
const [TRIED, BYTES, FIVES] = [at('stot'), at('bout'), at('hrsp_5xx')];
const [UNOPENED, BROKEN, RETRIED, REDISPATCHED] = [at('econ'), at('eresp'), at('wretr'), at('wredis')];
const [SENT, LEFT, EXPIRED] = [at('bin'), at('cli_abrt'), at('srv_abrt')];
const GOOD_ANSWERS = [at('hrsp_1xx'), at('hrsp_2xx'), at('hrsp_3xx'), at('hrsp_4xx')];

/** In the order of COLUMNS. */
export type Reading = readonly number[];

export function readingOf({ values }: StatRow): Reading {
  return POSITIONS.map((position) => values[position] || 0);
}

/** What was counted since `before`; undefined for a worker that has just begun. A counter that is less has begun again. */
export function counted(before: Reading | undefined, now: Reading): Reading {
  return now.map((value, column) => {
    const last = before?.[column] ?? 0;
    return value < last ? value : value - last;
  });
}

/** Something went wrong at a member, whether a client noticed it or not. */
export function hasTrouble(difference: Reading): boolean {
  return [UNOPENED, BROKEN, RETRIED, REDISPATCHED, FIVES].some((column) => of(difference, column) > 0);
}

/** Connections broke off or timed out: at a member that never answers, or because clients were content. */
export function hasAborts(difference: Reading): boolean {
  return aborts(difference) > 0;
}

/** A member has sent something; in mode `http` HAProxy may have. */
export function hasAnswered(reading: Reading): boolean {
  return of(reading, BYTES) > 0;
}

/**
 * Connections that broke off or timed out while no member sent one byte to any that ended. `answers`: members have answered
 * before, because a protocol whose clients only send, such as syslog, looks the same.
 */
export function unanswered(difference: Reading, answers: boolean): number {
  const isSilent = answers && of(difference, SENT) > 0 && !hasAnswered(difference);
  return isSilent ? aborts(difference) : 0;
}

function aborts(difference: Reading): number {
  return of(difference, LEFT) + of(difference, EXPIRED);
}

/** What a backend, or a frontend, has done for clients. `answers` as for `unanswered`. */
export function intervalOfClients(row: StatRow, difference: Reading, answers: boolean): Interval {
  if (row.mode === 'http') return ofAnswers(difference);
  const silent = unanswered(difference, answers);
  return ofConnections(openOf(row), difference, [UNOPENED, BROKEN], silent);
}

/**
 * What a server has counted: each attempt to connect, whatever becomes of the client after it. `open`: connections that its
 * backend has now. HAProxy counts a failed attempt only when it makes the next one, a second later.
 */
export function intervalOfMember(
  row: StatRow,
  difference: Reading,
  open: number,
  answers: boolean,
): Interval {
  const unopened = of(difference, UNOPENED) + of(difference, RETRIED) + of(difference, REDISPATCHED);
  // What HAProxy answers for it, such as 504, its backend counts.
  if (row.mode === 'http' && unopened === 0) return ofAnswers(difference, [FIVES, BROKEN]);
  const silent = row.mode === 'http' ? 0 : unanswered(difference, answers);
  return ofConnections(open, difference, [UNOPENED, RETRIED, REDISPATCHED, BROKEN], silent);
}

function ofAnswers(difference: Reading, failures: readonly number[] = [FIVES]): Interval {
  const good = sum(GOOD_ANSWERS.map((column) => of(difference, column)));
  const failed = sum(failures.map((column) => of(difference, column)));
  return { unit: 'requests', tried: good + failed, failed, hasSuccess: good > 0 };
}

/** Open connections. */
export function openOf({ values }: StatRow): number {
  return values[OPEN] || 0;
}

/**
 * A connection that is being opened counts as tried, and as failed only later: what is neither failed nor open any more has
 * succeeded, and so has one that got bytes of a member.
 */
function ofConnections(
  open: number,
  difference: Reading,
  failures: readonly number[],
  silent: number,
): Interval {
  // An answer that broke off may count as an abort, too.
  const failed = Math.max(sum(failures.map((column) => of(difference, column))), silent);
  const tried = Math.max(failed, of(difference, TRIED));
  const rest = tried - failed;
  const hasSuccess = rest > open || (rest > 0 && of(difference, BYTES) > 0);
  return { unit: 'connections', tried, failed, hasSuccess };
}

function of(difference: Reading, column: number): number {
  return difference[column] ?? 0;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
