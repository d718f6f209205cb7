// Measures work independently of the load of the machine.

/** Milliseconds of processor time of this process. For one test only if the tests of its file are serial. */
export function processorTime(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
