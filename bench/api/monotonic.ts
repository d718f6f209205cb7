/** Milliseconds of a clock that all processes of the machine share; performance.now() begins with its own process. */
export function monotonic(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
