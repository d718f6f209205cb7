// The keepalived of the tests. `KEEPALIVED` names the executable, because test/support/haproxy/debian-matrix.sh has other
// versions than the installed one.

export const keepalivedExecutable = process.env.KEEPALIVED ?? 'keepalived';

/** Flags for an agent that starts this keepalived. */
export const keepalivedFlags: readonly string[] = ['--keepalived', keepalivedExecutable];
