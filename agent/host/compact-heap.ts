// Gives back to the system what the start has left in the heap: the texts that were read, the trees that they were
// parsed into, pages that are half empty. V8 by itself does so when memory is short, which on a large host is never.
// Tells V8 what is different from then on.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Milliseconds after which HAProxy has booted, which wants the processors as compilers do. */
const SETTLED = 10_000;

export class HeapCompaction {
  readonly #collector: () => NodeJS.GCFunction;
  readonly #setFlag: (flag: string) => void;
  #isDone = false;

  constructor(collector = v8Collector, setFlag = setFlagsFromString) {
    this.#collector = collector;
    this.#setFlag = setFlag;
  }

  /**
   * Stops everything else: for 0.1 s with a thousand Services, 0.5 s with five thousand of 20 members. Nothing from the
   * second time on.
   */
  once(): void {
    if (this.#isDone) return;
    this.#isDone = true;
    // The young generation, which may grow large during the start, begins small again and stays so.
    this.#setFlag('--semi-space-growth-factor=1');
    // It is then so small that one thread collects it soonest: others have to be waited for where processors are few.
    this.#setFlag('--no-parallel-scavenge');
    // Nor may the old one grow to several times what lives in it before it is collected, as each scrape would have it.
    this.#setFlag('--heap-growing-percent=50');
    this.#collector()({ type: 'major', execution: 'sync', flavor: 'last-resort' });
    // V8 does so once more as soon as there is little to do, bit by bit, and from then on when the heap has grown by 10 MB;
    // by itself it would do it twice each time, and find nothing the second time.
    this.#setFlag('--memory-reducer-gc-count=1');
    setTimeout(optimizeSoon, SETTLED).unref();
  }
}

/** Most of what a change runs it calls once: it is made fast soon, now that nothing else waits for the processor. */
function optimizeSoon(): void {
  setFlagsFromString('--no-efficiency-mode');
  setFlagsFromString('--invocation-count-for-turbofan=300');
}

/**
 * For the start. One optimizing compiler in place of two: 5 MB less for 0.05 s more of a start at a thousand Services.
 * On the command line it would cost another 0.02 s, and so would what follows.
 */
export function compileLittle(): void {
  setFlagsFromString('--no-maglev');
  // V8 asks after so many calls whether a function is to be made fast, and how many it has set itself when it first ran:
  // functions of the start would otherwise be asked for after 3,000 calls for as long as the agent runs. Until the start
  // is over the answer is no, unless they are called a lot.
  setFlagsFromString('--invocation-count-for-turbofan=1000');
  setFlagsFromString('--efficiency-mode');
  setFlagsFromString('--efficiency-mode-delay-turbofan=5000');
}

/**
 * What `--expose-gc` gives to a whole process from its start: with that on the command line Node could use nothing of
 * what it has compiled beforehand, and would start 20 ms later.
 */
function v8Collector(): NodeJS.GCFunction {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc');
}
