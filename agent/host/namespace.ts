// Runs a program in a network namespace while the agent stays outside: files and sockets are shared, the network is not.

/** What to start in place of `program`; `netns` is a name in /run/netns, '' the agent's own. The process is the same one. */
export function inNamespace(
  netns: string,
  program: string,
  args: readonly string[],
): readonly [program: string, args: readonly string[]] {
  if (netns === '') return [program, args];
  return ['nsenter', [`--net=/run/netns/${netns}`, '--', program, ...args]];
}
