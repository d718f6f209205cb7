// The keepalived of the tests. `KEEPALIVED` names the executable: test/support/haproxy/debian-matrix.sh has other versions than
// the installed one.

export const keepalivedExecutable = process.env.KEEPALIVED ?? 'keepalived';

/** Has an agent start it. */
export const keepalivedFlags: readonly string[] = ['--keepalived', keepalivedExecutable];
