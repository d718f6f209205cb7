// The commands of `headgate`, in the order of the help.

import { check } from './check.ts';
import type { Command } from './command.ts';
import { completion } from './completion/completion.ts';
import { convert } from './convert.ts';
import { help } from './help.ts';
import { list } from './list.ts';
import { failover, maintenance } from './orders.ts';
import { plan } from './plan/plan.ts';
import { release } from './release.ts';
import { render } from './render.ts';
import { run } from './run.ts';
import { status } from './status.ts';
import { version } from './version.ts';
import { vrrpKey } from './vrrp-key.ts';
import { why } from './why.ts';

export const commands: readonly Command[] = [
  run,
  check,
  render,
  plan,
  list,
  status,
  why,
  failover,
  maintenance,
  vrrpKey,
  release,
  convert,
  completion,
  help,
  version,
];
