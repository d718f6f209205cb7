// The files of an amphora's keepalived. The controller's text names the check script.

import { join } from 'node:path';

export interface VrrpPaths {
  /** The text that the controller has uploaded last. */
  readonly uploaded: string;
  /** The text that keepalived runs with; absent if it is not to run. */
  readonly config: string;
  readonly script: string;
  /** What the script checks, one thing a line. */
  readonly checked: string;
  /** For keepalived's own files. */
  readonly directory: string;
  readonly pidFile: string;
  readonly vrrpPidFile: string;
  readonly log: string;
}

/** `base`: `base_path` of the controller, which it uses in its texts. */
export function vrrpPaths(base: string, runtimeDir: string): VrrpPaths {
  const directory = join(runtimeDir, 'keepalived');
  return {
    uploaded: join(base, 'vrrp', 'uploaded-keepalived.conf'),
    config: join(base, 'vrrp', 'octavia-keepalived.conf'),
    script: join(base, 'vrrp', 'check_script.sh'),
    checked: join(base, 'vrrp', 'checked'),
    directory,
    pidFile: join(directory, 'keepalived.pid'),
    vrrpPidFile: join(directory, 'vrrp.pid'),
    log: join(directory, 'keepalived.log'),
  };
}
