// The file from which the interfaces are made again after a reboot: what the controller has plugged, as JSON.

import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { HeadgateError } from '../../base/errors.ts';
import { listOf, number, object, string } from '../../base/validate.ts';
import { writeAtomically } from '../../host/atomic-file.ts';
import { makeFolder } from '../../host/make-directory.ts';
import type { InterfaceRule, NetworkPlug, VipPlug } from '../parts.ts';
import { checkNetworkPlug, checkRules, checkVipPlug } from './check-plug.ts';
import type { Plugged } from './wanted-interface.ts';

const file = object({
  interfaces: listOf(object({ name: string(), mac: string(), mtu: number().nullish() })),
});

/** Errors: FILE_WRITE. */
export async function writePlugged(path: string, interfaces: readonly Plugged[]): Promise<void> {
  await makeFolder(dirname(path), 0o755);
  await writeAtomically(path, [`${JSON.stringify({ interfaces }, undefined, 1)}\n`]);
}

/** Nothing without a file. Errors: FILE_READ; with `retry: 'never'` if it is not what writePlugged() writes. */
export async function readPlugged(path: string): Promise<readonly Plugged[]> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw new HeadgateError('FILE_READ', `Cannot read "${path}"`, { cause: error });
  });
  if (text === undefined) return [];
  try {
    const value: unknown = JSON.parse(text);
    file.parse(value);
    return (value as { interfaces: readonly Plugged[] }).interfaces.map(checked);
  } catch (cause) {
    throw new HeadgateError('FILE_READ', `Cannot use "${path}"`, { retry: 'never', cause });
  }
}

/** Another program may have changed the file: its values become words of commands. */
function checked(plugged: Plugged): Plugged {
  const { name, vip, rules } = plugged;
  if (!/^eth[1-9]\d{0,3}$/.test(name)) throw new TypeError(`"${name}" is not the name of an interface`);
  const network: NetworkPlug = checkNetworkPlug({ ...plugged, vip: undefined });
  const { mac, mtu, fixed, isSriov } = network;
  const vips: VipPlug | undefined =
    vip === undefined ? undefined : checkVipPlug({ ...vip, mac, mtu, isSriov });
  const allowed: readonly InterfaceRule[] | undefined = rules === undefined ? undefined : checkRules(rules);
  return {
    ...{ name, mac, mtu, fixed, isSriov, rules: allowed },
    vip: vips && {
      vrrpAddress: vips.vrrpAddress,
      vip: vips.vip,
      additionalVips: vips.additionalVips,
    },
  };
}
