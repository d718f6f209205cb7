// Chooses the combinations of HAProxy, keepalived and nft versions to test: first the installed ones, then each other HAProxy of
// Debian with the newest keepalived, then each keepalived and nft that has had no run. Pure.

import type { Daemon } from '../test/support/repository/tests-of.ts';

/** A version of a program. */
export interface Program {
  /** The whole version, or its known part: '3.2.26', '3.2', '(installed)'. */
  readonly version: string;
  /** undefined if the program is not available. */
  readonly path: string | undefined;
}

export type Host = Readonly<Record<Daemon, Program>>;

export interface MatrixRun {
  readonly host: Host;
  /** The daemons whose tests run; each version has one run. */
  readonly daemons: readonly Daemon[];
}

const DAEMONS: readonly Daemon[] = ['haproxy', 'keepalived', 'nft'];

/** `others` has the oldest version first. `daemon` and `version` select runs: '3.2' includes '3.2.26'. */
export function matrixRuns(
  installed: Host,
  others: Readonly<Record<Daemon, readonly Program[]>>,
  daemon?: string,
  version?: string,
): readonly MatrixRun[] {
  const keepalived = others.keepalived.findLast(({ path }) => path !== undefined) ?? installed.keepalived;
  const hosts: readonly Host[] = [
    installed,
    ...others.haproxy.map((haproxy) => ({ ...installed, haproxy, keepalived })),
    ...others.keepalived.map((each) => ({ ...installed, keepalived: each })),
    ...others.nft.map((each) => ({ ...installed, nft: each })),
  ];
  const tested = new Set<string>();
  const isDue = (of: Daemon, host: Host): boolean => {
    const name = `${of} ${host[of].version}`;
    // The others need an available HAProxy.
    if (tested.has(name) || (of !== 'haproxy' && host.haproxy.path === undefined)) return false;
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
