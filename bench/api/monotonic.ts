// A clock that all processes of the machine share; performance.now() starts with its own process.

/** Milliseconds. */
export function monotonic(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
