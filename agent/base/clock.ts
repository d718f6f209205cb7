// The time, as what waits takes it: tests put their own in its place. And time as the API server writes it.

export interface Clock {
  /** Milliseconds that never go back; only differences mean something. */
  monotonic(): number;
  /** Milliseconds since the epoch: what the machine takes the time of day for, for people to read. */
  wall(): number;
  /** Calls back once after so many milliseconds; the function that it gives calls it off. Keeps no process alive. */
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

/** Kubernetes' MicroTime, six digits after the point: with a Date's three it is refused with 400. */
export function microTime(milliseconds: number): string {
  const whole = Math.floor(milliseconds);
  const micros = Math.floor((milliseconds - whole) * 1000);
  return new Date(whole).toISOString().replace('Z', `${String(micros).padStart(3, '0')}Z`);
}

/** Kubernetes' Time, whole seconds. */
export function secondTime(milliseconds: number): string {
  return `${new Date(milliseconds).toISOString().slice(0, 19)}Z`;
}
