// Texts that Octavia's own templates make (render-texts.py).

import { fileURLToPath } from 'node:url';
import { runCommand } from '../../../agent/host/run-command.ts';

const PROGRAM = fileURLToPath(new URL('render-texts.py', import.meta.url));

/** The interpreter of Debian's packages, in which python3-octavia is. */
const PYTHON = '/usr/bin/python3';

export interface VrrpGiven {
  readonly base_path: string;
  readonly group: string;
  readonly vip: string;
  readonly cidr: string;
  readonly gateway: string;
  /** The index of the one whose text this is. */
  readonly own: number;
  readonly amphorae: readonly {
    readonly role: string;
    readonly vrrp_interface: string;
    readonly vrrp_id: number;
    readonly vrrp_priority: number;
    readonly vrrp_ip: string;
  }[];
  readonly additional?: readonly {
    readonly ip_address: string;
    readonly subnet: {
      readonly cidr: string;
      readonly gateway_ip: string | null;
      readonly host_routes: readonly { readonly destination: string; readonly nexthop: string }[];
    };
  }[];
}

export function renderVrrp(vrrp: VrrpGiven): Promise<string> {
  return render({ vrrp });
}

/** `listener`: with the fields of Octavia's data model that the template reads. */
export function renderListener(listener: unknown): Promise<string> {
  return render({ listener });
}

async function render(given: unknown): Promise<string> {
  const input = JSON.stringify(given);
  const { exitCode, stdout, stderr } = await runCommand(PYTHON, [PROGRAM], { timeout: 60_000, input });
  if (exitCode !== 0) throw new Error(`Octavia does not render the text: ${stderr}`);
  return stdout;
}
