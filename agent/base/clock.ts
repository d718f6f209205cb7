// The clock that code with timers gets as an argument, so that tests can use a fake one; and Kubernetes' formats of time.

export interface Clock {
  /** Milliseconds that never go back; only differences have a meaning. */
  monotonic(): number;
  /** Milliseconds since the epoch, by the machine's time of day. */
  wall(): number;
  /** Calls back once; the returned function cancels the call. Does not keep the process alive. */
  after(milliseconds: number, callback: () => void): () => void;
}

export const systemClock: Clock = {
  monotonic: () => performance.now(),
  wall: () => Date.now(),
  after(milliseconds, callback) {
    const timer = setTimeout(callback, Math.max(0, milliseconds));
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** Resolves after the time of the clock. Does not keep the process alive. */
export function passed(clock: Clock, milliseconds: number): Promise<void> {
  return new Promise((resolve) => clock.after(milliseconds, resolve));
}

/** Resolves after the time. Keeps the process alive until then. */
export function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/** Kubernetes' MicroTime has six digits after the point; the API server answers 400 to the three digits of a Date. */
export function microTime(milliseconds: number): string {
  const whole = Math.floor(milliseconds);
  const micros = Math.floor((milliseconds - whole) * 1000);
  return new Date(whole).toISOString().replace('Z', `${String(micros).padStart(3, '0')}Z`);
}

/** Kubernetes' Time has whole seconds. */
export function secondTime(milliseconds: number): string {
  return `${new Date(milliseconds).toISOString().slice(0, 19)}Z`;
}
