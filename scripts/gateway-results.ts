// Reads the log of Gateway API's conformance suite, which is that of a Go test with -test.v. Pure.

import { parseYamlDocuments } from '../agent/base/yaml.ts';

export interface GatewayResult {
  readonly name: string;
  readonly outcome: 'passed' | 'failed' | 'skipped';
  readonly seconds: number;
  /** The parts that failed, or the message of a test that failed as a whole or skips itself. */
  readonly reasons: readonly string[];
  /** Its own lines of the log. */
  readonly output: string;
}

const OUTCOMES = { PASS: 'passed', FAIL: 'failed', SKIP: 'skipped' } as const;
const OWNER = /^=== (?:RUN|CONT|NAME|PAUSE) +TestConformance\/([^/\s]+)/;
const OTHER_OWNER = /^=== /;
const RESULT = /^ *--- (PASS|FAIL|SKIP): TestConformance\/([^/\s]+)(?:\/(\S+))? \((\d+(?:\.\d+)?)s\)/;
/** The suite's, of a test with a feature that is not claimed, and of one that is not asked for. */
const NOT_ASKED = /: Skipping \S+: (?:suite does not support|test explicitly skipped)/;
/** The message of a failed comparison, or of a test that skips itself. */
const MESSAGE = /^\s+(?:Messages:|\S+\.go:\d+:)\s+(?!\S+ Deleting)(\S.*)/gm;
const TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*Z:? ?/;

/** The results of every test that the suite has run, in its order. */
export function gatewayResults(log: string): readonly GatewayResult[] {
  const outputs = new Map<string, string[]>();
  const ended: { name: string; outcome: GatewayResult['outcome'] }[] = [];
  /** Key: a test; Go does not count parts that run at the same time to the test itself. */
  const longest = new Map<string, number>();
  const failedParts = new Map<string, string[]>();
  let owner: string | undefined;
  for (const line of log.split('\n')) {
    const [, started] = OWNER.exec(line) ?? [];
    if (started !== undefined) owner = started;
    else if (OTHER_OWNER.test(line)) owner = undefined;
    const [, word = '', test = '', part, seconds] = RESULT.exec(line) ?? [];
    const to = test === '' ? owner : test;
    if (to !== undefined) valuesOf(outputs, to).push(line);
    if (test === '') continue;
    longest.set(test, Math.max(longest.get(test) ?? 0, Number(seconds)));
    if (part === undefined) ended.push({ name: test, outcome: OUTCOMES[word as keyof typeof OUTCOMES] });
    else if (word === 'FAIL') valuesOf(failedParts, test).push(part);
  }
  return ended
    .map((result) => {
      const output = outputs.get(result.name)?.join('\n') ?? '';
      const message = [...output.matchAll(MESSAGE)].at(-1)?.[1] ?? '';
      const whole = result.outcome === 'passed' ? [] : [message];
      const reasons = failedParts.get(result.name) ?? whole;
      return { ...result, seconds: longest.get(result.name) ?? 0, reasons, output };
    })
    .filter(({ outcome, output }) => outcome !== 'skipped' || !NOT_ASKED.test(output));
}

/** The log without times and with each line once: the suite asks ten times a second. */
export function condensed(log: string): string {
  const counts = new Map<string, number>();
  for (const line of log.split('\n')) {
    const text = line.replace(TIME, '');
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  return [...counts].map(([text, count]) => (count === 1 ? text : `${text} (${count} times)`)).join('\n');
}

/** False if it was killed or crashed, so that results are missing. */
export function hasEnded(log: string): boolean {
  return /^--- (PASS|FAIL): TestConformance /m.test(log);
}

function valuesOf(map: Map<string, string[]>, key: string): string[] {
  const values = map.get(key) ?? [];
  map.set(key, values);
  return values;
}

/** Features that the suite's report has as unsupported, and that are not in a list. */
export function unlistedFeatures(report: string, listed: readonly string[]): readonly string[] {
  const { documents } = parseYamlDocuments(report);
  const profiles = (documents[0]?.value as Report | undefined)?.profiles ?? [];
  const unsupported = profiles.flatMap(({ extended }) => extended?.unsupportedFeatures ?? []);
  return [...new Set(unsupported)].filter((name) => !listed.includes(name));
}

/** The parts of a ConformanceReport that count here. */
interface Report {
  readonly profiles?: readonly { readonly extended?: { readonly unsupportedFeatures?: readonly string[] } }[];
}
