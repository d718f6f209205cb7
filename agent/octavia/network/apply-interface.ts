// Brings an interface to what it needs, by steps of `ip -batch`, until nothing differs: an address may not be usable at once,
// and the removal of one may take others or routes with it.

import { HeadgateError } from '../../base/errors.ts';
import type { Log } from '../../host/log.ts';
import { differences, type Phase, type Step } from './differences.ts';
import type { IpProgram } from './ip-program.ts';
import type { WantedInterface } from './wanted-interface.ts';

export interface ApplyOptions {
  readonly ip: Pick<IpProgram, 'found' | 'batch'>;
  /** Resolves after so many milliseconds. */
  readonly wait: (milliseconds: number) => Promise<void>;
  readonly log: Log;
}

const RETRY_DELAY_MS = 200;
const MAX_ROUNDS = 20;
/** Duplicate address detection takes a second or two; a port of a busy switch may start late: half a minute. */
const MAX_TENTATIVE_READINGS = 150;
const PHASES: readonly Phase[] = ['link', 'address', 'route', 'removal'];

/**
 * True if something has changed. A route that the kernel refuses is the user's mistake in a subnet: it is logged, and the
 * others are set. Errors: COMMAND_FAILED if the link or an address cannot be set.
 */
export async function applyInterface(wanted: WantedInterface, options: ApplyOptions): Promise<boolean> {
  let last = { text: '', faults: [] as readonly string[] };
  for (let round = 0; ; round++) {
    const steps = differences(wanted, await options.ip.found());
    const text = steps.map(({ line }) => line).join('; ');
    if (text === '') return round > 0;
    const isForNow = last.faults.some(willPass);
    if (round === MAX_ROUNDS || (text === last.text && !isForNow)) {
      conclude(steps, text, last.faults.join('; '), wanted.name, options.log);
      return true;
    }
    if (isForNow) await options.wait(RETRY_DELAY_MS);
    last = { text, faults: await applySteps(steps, wanted.name, options) };
  }
}

/** These steps cannot be made. Errors: COMMAND_FAILED, if nothing works without them. */
function conclude(steps: readonly Step[], text: string, error: string, name: string, log: Log): void {
  if (steps.some(({ phase }) => phase === 'link' || phase === 'address'))
    throw new HeadgateError('COMMAND_FAILED', `Cannot set ${name} up: ${error || text}`);
  log.warn(`Cannot set all routes of ${name}`, { error, steps: text });
}

/** What ip says. */
async function applySteps(
  steps: readonly Step[],
  name: string,
  options: ApplyOptions,
): Promise<readonly string[]> {
  const faults: string[] = [];
  for (const phase of PHASES) {
    const due = steps.filter((step) => step.phase === phase);
    if (phase === 'route' && due.length > 0) await awaitDetection(name, options);
    for (const family of ['v4', 'v6'] as const) {
      const lines = due.filter((step) => step.family === family).map(({ line }) => line);
      const fault = await options.ip.batch(family, lines);
      if (fault !== '') faults.push(fault);
    }
  }
  return faults;
}

/** Waits for the end of duplicate address detection, before which an address is no source of packets. */
async function awaitDetection(name: string, { ip, wait, log }: ApplyOptions): Promise<void> {
  for (let reading = 1; reading <= MAX_TENTATIVE_READINGS; reading++) {
    const { addresses } = await ip.found();
    if (!addresses.some(({ device, isTentative }) => device === name && isTentative)) return;
    await wait(RETRY_DELAY_MS);
  }
  log.warn(`Duplicate address detection on ${name} does not end`, {});
}

/** An address that has just been added is not known everywhere in the kernel yet. */
function willPass(fault: string): boolean {
  return /Invalid argument|Invalid prefsrc|Invalid source address/i.test(fault);
}
