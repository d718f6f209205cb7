import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { Provisioning } from '../../../agent/address-keeper/address-provisioning.ts';
import type { AddressClaim } from '../../../agent/kubernetes/address-claim.ts';
import { silentLog } from '../../support/values/silent-log.ts';

test('A release lists the Services that still have the address', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'headgate-provisioning-'));
  const program = join(directory, 'program');
  await writeFile(program, `#!/bin/sh\ncat >> ${directory}/calls\n`);
  await chmod(program, 0o755);
  const claims = new Map<string, AddressClaim>();
  const provisioning = new Provisioning({
    log: silentLog(),
    metrics: { provisioned: () => undefined },
    claimsOn: (address) => [...claims.values()].filter((claim) => claim.address === address),
    publicOf: (address) => address,
    onProblem: (service) => t.fail(service),
  });
  provisioning.restart(program, []);
  t.teardown(async () => {
    provisioning.close();
    await rm(directory, { recursive: true });
  });
  const change = async (name: string, claim: AddressClaim | undefined): Promise<void> => {
    if (claim === undefined) claims.delete(name);
    else claims.set(name, claim);
    provisioning.stored(name, claim);
    for (let looks = 0; provisioning.pending > 0; looks++) {
      if (looks > 1_000) throw new Error('The program is not called');
      await sleep(10);
    }
  };
  await change('a', claimOf('default/web', 80));
  await change('b', claimOf('default/api', 81));
  await change('reserved', { ...claimOf('default/other', 82), reserved: true });
  await change('a', undefined);
  await change('b', undefined);
  const calls = (await readFile(join(directory, 'calls'), 'utf8')).trim().split('\n');
  t.deepEqual(
    calls.map((line) => JSON.parse(line)).map(({ action, service, others }) => [action, service, others]),
    [
      ['assign', 'default/web', []],
      ['assign', 'default/api', ['default/web']],
      ['release', 'default/web', ['default/api']],
      ['release', 'default/api', []],
    ],
  );
});

function claimOf(service: string, port: number): AddressClaim {
  return {
    kind: 'AddressClaim',
    name: '192-0-2-10',
    address: '192.0.2.10',
    family: 'v4',
    pool: 'public',
    service,
    serviceUID: service,
    sharingKey: 'shared',
    ports: [{ protocol: 'TCP', port }],
    granted: undefined,
    since: 1,
    heldUntil: 0,
    reserved: false,
    namespace: '',
  };
}
