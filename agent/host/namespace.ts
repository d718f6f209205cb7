// Runs a program in a network namespace while the agent stays outside: they share files and unix sockets, not the network.

/** The command that becomes `program` in the namespace; `netns` is a name in /run/netns, '' for the agent's own. */
export function inNamespace(
  netns: string,
  program: string,
  args: readonly string[],
): readonly [program: string, args: readonly string[]] {
  if (netns === '') return [program, args];
  return ['nsenter', [`--net=/run/netns/${netns}`, '--', program, ...args]];
}
