// Prints the table of the demonstration, one row after each phase, with colours on a terminal.

import { availableParallelism, loadavg } from 'node:os';
import { styleText } from 'node:util';
import type { EjectionReport } from './demo-ejection.ts';
import type { GatewayReport } from './demo-gateway.ts';
import type { LoadReport } from './demo-load.ts';
import type { Phase, PhaseResult } from './demo-phases.ts';
import type { PlanReport } from './demo-plan.ts';
import type { UdpReport } from './demo-udp.ts';

export interface Row extends LoadReport, PhaseResult {
  readonly phase: Phase;
  readonly reloads: number;
}

const WIDTHS = [28, 9, 7, 8, 8, 8];
const HEADINGS = ['phase', 'requests', 'failed', 'p50 ms', 'p99 ms', 'reloads', '  edit to traffic, ms'];

export function printIntroduction(members: number): void {
  const [busy = 0] = loadavg();
  console.log(`${members} members, their clients, the agent and HAProxy share this machine: ${counted(availableParallelism(), 'processor')}, load ${busy.toFixed(1)}.
Each row is a change of endpoints or Services under load. "failed" should be 0 in all of them; p99 grows on a busy machine.
A reload starts another worker of HAProxy beside those that still have connections: no change here needs one.
`);
}

export function printHeadings(): void {
  const cells = HEADINGS.map((heading, column) => aligned(heading, column));
  console.log(styleText('bold', cells.join('')));
}

export function printRow(row: Row): void {
  const { phase, requests, failed, p50, p99, reloads, edits = [], remark } = row;
  const cells = [
    phase.name,
    requests.toLocaleString('en'),
    String(failed),
    p50.toFixed(1),
    p99.toFixed(1),
    String(reloads),
    edits.length === 0 ? '' : `  ${editsInWords(edits)}`,
  ].map((cell, column) => aligned(cell, column));
  for (const [column, bad] of [
    [2, failed > 0],
    [5, reloads > 0],
  ] as const) {
    cells[column] = styleText(bad ? ['red', 'bold'] : 'green', cells[column] ?? '');
  }
  console.log(cells.join('').trimEnd());
  if (remark !== undefined) console.log(styleText('dim', `  ${remark}`));
}

/** A line for each fault. */
export function faultsOf(rows: readonly Row[]): readonly string[] {
  return rows.flatMap(({ phase, failed, errors, reloads }) => [
    ...(failed > 0
      ? [`${phase.name}: ${counted(failed, 'request')} failed: ${[...new Set(errors)].join('; ')}`]
      : []),
    ...(reloads > 0 ? [`${phase.name}: ${counted(reloads, 'reload')}, but the phase needs none`] : []),
  ]);
}

export function printSummary(rows: readonly Row[]): void {
  const sum = (of: (row: Row) => number): number => rows.reduce((total, row) => total + of(row), 0);
  const edits = rows.flatMap(({ edits: some = [] }) => some);
  const resent = sum((row) => row.resent);
  console.log(`
${sum((row) => row.requests).toLocaleString('en')} requests, ${sum((row) => row.failed)} failed, ${counted(
    sum((row) => row.reloads),
    'reload',
  )}.
From the end of an edit to the first answer of the new member: ${editsInWords(edits)}.`);
  console.log(
    `A controller that writes a file and reloads HAProxy for each edit would have reloaded it ${counted(edits.length, 'time')}.`,
  );
  if (resent > 0) {
    console.log(
      `${counted(resent, 'request')} sent again on a new connection, as HTTP clients do, because a kept connection had ended.`,
    );
  }
}

/** `report`: the result, or what this machine lacks. */
export function printGateway(report: GatewayReport | string): void {
  if (typeof report === 'string') console.log(`A Gateway is not shown: ${report}.`);
  else {
    const { requests, failed, route, weight, certificate } = report;
    const counts = `${requests.toLocaleString('en')} requests on new TLS connections, ${failed} failed`;
    console.log(
      `A Gateway: ${counts}; a new route after ${route.toFixed(1)} ms, a weight moved from 0 to 100 after ${weight.toFixed(1)} ms, a renewed certificate after ${certificate.toFixed(1)} ms.`,
    );
  }
}

export function faultsOfGateway(report: GatewayReport | string): readonly string[] {
  if (typeof report === 'string') return [];
  const { failed, errors, late, reloads } = report;
  return [
    ...(failed > 0 ? [`Gateway: ${counted(failed, 'request')} failed: ${errors.join('; ')}`] : []),
    ...(late > 0 ? [`Gateway: ${counted(late, 'request')} followed the old weight`] : []),
    ...(reloads > 0 ? [`Gateway: ${counted(reloads, 'reload')}, but routes and certificates need none`] : []),
  ];
}

export function printEjection({ requests, failed, back }: EjectionReport): void {
  console.log(
    `One of five members answers 500: ${failed} of ${requests} requests failed, then it rested; requests again ${back.toFixed(0)} ms after it was well.`,
  );
}

export function faultsOfEjection({ failed }: EjectionReport): readonly string[] {
  return failed > 5 ? [`A member that answers 500 failed ${counted(failed, 'request')}`] : [];
}

export function printPlan({ summary, opens, takes }: PlanReport): void {
  console.log(`One more Service and one member less, before it is done ("headgate plan"):
  ${summary}
  ${opens}
  ${takes}`);
}

export function faultsOfPlan({ summary, opens, takes }: PlanReport): readonly string[] {
  const isWhole = summary.startsWith('1 opens, 0 close; ') && opens !== '' && takes !== '';
  return isWhole ? [] : [`"headgate plan" does not say what a change opens and takes: ${summary}`];
}

/** `report`: the result, or what this machine lacks. */
export function printUdp(report: UdpReport | string): void {
  if (typeof report === 'string') console.log(`UDP is not shown: ${report}.`);
  else
    console.log(
      `UDP, by the kernel: ${report.queries.toLocaleString('en')} queries, ${report.lost} lost, while the members changed ${report.changes} times.`,
    );
}

export function faultsOfUdp(report: UdpReport | string): readonly string[] {
  if (typeof report === 'string' || (report.lost === 0 && report.members > 2)) return [];
  return [`UDP: lost queries: ${report.lost}, members that answered: ${report.members}`];
}

function editsInWords(edits: readonly number[]): string {
  const sorted = [...edits].sort((a, b) => a - b);
  const [median = 0, worst = 0] = [sorted[Math.floor(sorted.length / 2)], sorted.at(-1)];
  if (edits.length === 1) return `${median.toFixed(1)} ms`;
  return `median ${median.toFixed(1)} ms, worst ${worst.toFixed(1)} ms of ${edits.length} edits`;
}

/** Aligns the first column to the left and numbers to the right; the last column has no width. */
function aligned(cell: string, column: number): string {
  const width = WIDTHS[column] ?? 0;
  return column === 0 ? cell.padEnd(width) : cell.padStart(width);
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}
