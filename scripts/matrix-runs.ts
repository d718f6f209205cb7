// Which versions of HAProxy and keepalived are tested together, and of which of the two the tests run: the installed
// ones, then each HAProxy that Debian has besides, with the newest keepalived; then what has met nobody so far. Pure.

import type { Daemon } from '../test/support/repository/tests-of.ts';

/** A program of one version; undefined where it cannot be had. */
export interface Program {
  /** The whole version, or what is known of it: '3.2.26', '3.2', '(installed)'. */
  readonly version: string;
  readonly path: string | undefined;
}

export type Host = Readonly<Record<Daemon, Program>>;

export interface MatrixRun {
  readonly host: Host;
  /** Those whose tests run: each version's run once. */
  readonly daemons: readonly Daemon[];
}

const DAEMONS: readonly Daemon[] = ['haproxy', 'keepalived'];

/** `others`: oldest first. `daemon` and `version` narrow it: '3.2' means '3.2.26' as well. */
export function matrixRuns(
  installed: Host,
  others: Readonly<Record<Daemon, readonly Program[]>>,
  daemon?: string,
  version?: string,
): readonly MatrixRun[] {
  const keepalived = others.keepalived.findLast(({ path }) => path !== undefined) ?? installed.keepalived;
  const hosts: readonly Host[] = [
    installed,
    ...others.haproxy.map((haproxy) => ({ haproxy, keepalived })),
    ...others.keepalived.map((each) => ({ ...installed, keepalived: each })),
  ];
  const tested = new Set<string>();
  const isDue = (of: Daemon, host: Host): boolean => {
    const name = `${of} ${host[of].version}`;
    // A keepalived waits for a HAProxy that can be had.
    if (tested.has(name) || (of === 'keepalived' && host.haproxy.path === undefined)) return false;
    tested.add(name);
    return (
      (daemon === undefined || of === daemon) &&
      (version === undefined || `${host[of].version}.`.startsWith(`${version}.`))
    );
  };
  return hosts
    .map((host) => ({ host, daemons: DAEMONS.filter((of) => isDue(of, host)) }))
    .filter(({ daemons }) => daemons.length > 0);
}
